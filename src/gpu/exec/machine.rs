//! The GPUs, opened and warm.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::lane::Lane;
use crate::gpu::GpuError;
use crate::gpu::Session;
use crate::gpu::env::Library;
use crate::gpu::heat::{Heater, Pace, WARM};
use crate::gpu::kernels::Kernels;
use crate::gpu::lt::{self, Gemms, Pick, Pins};
use crate::gpu::raw::nccl::Comms;
use crate::gpu::raw::{Gpu, Memory, Pinned, Priority, Stream};
use crate::gpu::tiles::Tiles;

/// How a machine is used.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Settings {
    /// How long a run may take.
    pub limit: Duration,
    /// Bytes of memory that every GPU is said to have free at most.
    pub memory: Option<u64>,
    /// How algorithms of products are chosen.
    pub pick: Pick,
    /// How long every GPU multiplies before each measurement, after a rest; zero: neither.
    pub warm: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(10),
            memory: None,
            pick: Pick::Heuristic,
            warm: WARM,
        }
    }
}

/// What a stream is for: its priority, and whether it copies to the host, from it, and does other things.
pub(super) type Role = (Priority, [bool; 3]);

/// The streams of one GPU, in the order made.
type Lanes = Vec<(Role, Rc<Lane>)>;

/// One GPU with what runs on it.
#[derive(Debug)]
pub struct Device {
    pub gpu: Rc<Gpu>,
    pub kernels: Kernels,
    pub gemms: RefCell<Gemms>,
    pub tiles: RefCell<Tiles>,
    /// Prepares memory, and opens flags when a run hangs; no run uses it.
    pub control: Stream,
    /// Where times are taken.
    pub clock: Stream,
    /// A word for each GPU: who has come to the barrier.
    pub board: Memory,
    /// What a kernel that waited too long says.
    pub status: Pinned,
}

/// GPUs that work together.
#[derive(Debug)]
pub struct Machine<'s> {
    session: &'s Session,
    devices: Vec<Device>,
    /// By position: whether the first reaches the memory of the second.
    reach: Vec<Vec<bool>>,
    comms: RefCell<Vec<(Vec<u32>, Rc<Comms>)>>,
    /// By position: what runs take turns with.
    lanes: RefCell<Vec<Lanes>>,
    settings: Settings,
    unusable: RefCell<Option<String>>,
    /// Holds the work of a timed round until the host opens it.
    pub(in crate::gpu) gate: Pinned,
    /// By position; made when first needed.
    heaters: OnceCell<Vec<Heater>>,
    pace: Pace,
    pub(in crate::gpu) rounds: Cell<u32>,
}

impl<'s> Machine<'s> {
    /// Takes GPUs of `session` by their numbers, which are distinct.
    ///
    /// # Errors
    /// [`GpuError`] for a GPU that is not open or a library that is missing, and the libraries'.
    pub fn open(session: &'s Session, gpus: &[u32], settings: Settings) -> Result<Self, GpuError> {
        for library in [Library::Nvrtc, Library::CublasLt] {
            session.require(library)?;
        }
        let opened = gpus
            .iter()
            .map(|&number| {
                let found = session.gpus().iter().find(|gpu| gpu.ordinal() == number);
                found.cloned().ok_or(GpuError::TooFew {
                    needed: number.saturating_add(1),
                    found: session.gpus().len() as u32,
                    hidden: String::new(),
                })
            })
            .collect::<Result<Vec<Rc<Gpu>>, _>>()?;
        let Some(first) = opened.first() else {
            return Err(GpuError::Argument("a machine of no GPU".to_owned()));
        };
        let gate = Pinned::new(first, 4)?;
        let mut reach = vec![vec![true; opened.len()]; opened.len()];
        for (i, gpu) in opened.iter().enumerate() {
            for (j, other) in opened.iter().enumerate().filter(|&(j, _)| j != i) {
                reach[i][j] = match gpu.open_peer(other) {
                    Ok(()) => true,
                    Err(GpuError::NoPeer { .. }) => false,
                    Err(error) => return Err(error),
                };
            }
        }
        let devices = opened
            .iter()
            .map(|gpu| {
                let board = Memory::new(gpu, 4 * opened.len() as u64)?;
                board.upload(0, &vec![0; 4 * opened.len()])?;
                Ok(Device {
                    kernels: Kernels::new(gpu, session.cache())?,
                    gemms: RefCell::new(Gemms::new(gpu)?),
                    tiles: RefCell::new(Tiles::new(gpu, session.cache())),
                    control: Stream::new(gpu, Priority::High)?,
                    clock: Stream::new(gpu, Priority::High)?,
                    board,
                    status: Pinned::new(gpu, 4 * crate::gpu::kernels::STATUS_WORDS)?,
                    gpu: Rc::clone(gpu),
                })
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        Ok(Self {
            session,
            devices,
            reach,
            comms: RefCell::default(),
            lanes: RefCell::default(),
            settings,
            unusable: RefCell::default(),
            gate,
            heaters: OnceCell::new(),
            pace: Pace::default(),
            rounds: Cell::new(0),
        })
    }

    /// The GPUs in the order given.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// How it is used.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it was opened from.
    pub const fn session(&self) -> &'s Session {
        self.session
    }

    /// The position of GPU `number`.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for one that was not opened.
    pub fn position(&self, number: u32) -> Result<usize, GpuError> {
        self.devices
            .iter()
            .position(|device| device.gpu.ordinal() == number)
            .ok_or_else(|| GpuError::Argument(format!("GPU {number} is used but was not opened")))
    }

    /// Whether every GPU reaches the memory of every other.
    pub fn all_peers(&self) -> bool {
        self.reach.iter().flatten().all(|&yes| yes)
    }

    /// That the GPU at `from` reaches the memory of the one at `to`.
    ///
    /// # Errors
    /// [`GpuError::NoPeer`] if not.
    pub(super) fn need_peer(&self, from: usize, to: usize) -> Result<(), GpuError> {
        match self.reach[from][to] {
            true => Ok(()),
            false => Err(GpuError::NoPeer {
                from: self.devices[from].gpu.ordinal(),
                to: self.devices[to].gpu.ordinal(),
            }),
        }
    }

    /// The communicators of these GPUs, made once.
    pub(super) fn comms(&self, gpus: &[u32]) -> Result<Rc<Comms>, GpuError> {
        let known = self.comms.borrow();
        if let Some((_, comms)) = known.iter().find(|(of, _)| of == gpus) {
            return Ok(Rc::clone(comms));
        }
        drop(known);
        self.session.require(Library::Nccl)?;
        let members = gpus
            .iter()
            .map(|&gpu| Ok(Rc::clone(&self.devices[self.position(gpu)?].gpu)))
            .collect::<Result<Vec<_>, GpuError>>()?;
        let comms = Rc::new(Comms::new(&members)?);
        self.comms
            .borrow_mut()
            .push((gpus.to_vec(), Rc::clone(&comms)));
        Ok(comms)
    }

    /// The `nth` stream for a role on the GPU at `position`. Runs follow one another, so they share
    /// streams: a GPU has few hardware queues, and streams in one queue wait for each other. But those of
    /// one role only: a stream that once copied to the host and now copies from it shares a copy engine with
    /// another that does the opposite.
    pub(super) fn lane(
        &self,
        position: usize,
        role: Role,
        nth: usize,
    ) -> Result<Rc<Lane>, GpuError> {
        let mut lanes = self.lanes.borrow_mut();
        lanes.resize_with(self.devices.len(), Vec::new);
        let lanes = &mut lanes[position];
        let mut known = lanes.iter().filter(|(of, _)| *of == role);
        if let Some((_, lane)) = known.nth(nth) {
            return Ok(Rc::clone(lane));
        }
        let lane = Rc::new(Lane::new(Stream::new(
            &self.devices[position].gpu,
            role.0,
        )?)?);
        lanes.push((role, Rc::clone(&lane)));
        Ok(lane)
    }

    /// Keeps GPUs from getting hot between measurements; none where the settings ask for no heating.
    pub(in crate::gpu) fn pace(&self) -> Option<&Pace> {
        (!self.settings.warm.is_zero()).then_some(&self.pace)
    }

    /// What heats the GPUs before a measurement, by position; made once, while nothing else runs.
    /// None where the settings ask for no heating.
    ///
    /// # Errors
    /// As [`Heater::new`].
    pub fn heaters(&self) -> Result<&[Heater], GpuError> {
        if self.settings.warm.is_zero() {
            return Ok(&[]);
        }
        if let Some(heaters) = self.heaters.get() {
            return Ok(heaters);
        }
        let heaters = self
            .devices
            .iter()
            .enumerate()
            .map(|(position, device)| {
                let (free, limit) = (self.free(position)?, self.settings.limit);
                Heater::new(&device.gpu, &device.kernels, &device.clock, free, limit)
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        Ok(self.heaters.get_or_init(|| heaters))
    }

    /// Takes the algorithms of products from a file.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for another version of the library, other GPUs and algorithms that do
    /// not fit.
    pub fn pin(&self, pins: &Pins) -> Result<(), GpuError> {
        for device in &self.devices {
            let name = &device.gpu.attributes().name;
            pins.fit(lt::version(), name).map_err(GpuError::Argument)?;
            let mut gemms = device.gemms.borrow_mut();
            pins.pins.iter().try_for_each(|pin| gemms.pin(pin))?;
        }
        Ok(())
    }

    /// The algorithms in use on GPUs of the first one's kind.
    pub fn pins(&self) -> Pins {
        let name = |device: &Device| device.gpu.attributes().name.clone();
        let first = self.devices.first().map(name).unwrap_or_default();
        let alike = self.devices.iter().filter(|device| name(device) == first);
        let pins = alike.flat_map(|device| device.gemms.borrow().pins());
        Pins::new(lt::version(), &first, pins)
    }

    /// Bytes of memory free on the GPU at `position`, within what the settings allow.
    ///
    /// # Errors
    /// The driver's.
    pub fn free(&self, position: usize) -> Result<u64, GpuError> {
        let (free, _) = self.devices[position].gpu.memory()?;
        Ok(self.settings.memory.map_or(free, |most| free.min(most)))
    }

    /// Refuses `needed` bytes that the GPU at `position` does not have.
    ///
    /// # Errors
    /// [`GpuError::Memory`].
    pub fn need_memory(&self, position: usize, needed: u64) -> Result<(), GpuError> {
        let free = self.free(position)?;
        match needed <= free {
            true => Ok(()),
            false => Err(GpuError::Memory {
                gpu: self.devices[position].gpu.ordinal(),
                needed,
                free,
            }),
        }
    }

    /// Whether a GPU did not answer in time.
    pub(super) fn any_lost(&self) -> bool {
        self.devices.iter().any(|device| device.gpu.is_lost())
    }

    /// Counts all GPUs as lost: they wait for each other, so that freeing memory on any may block.
    pub(super) fn lose(&self) {
        for device in &self.devices {
            device.gpu.lose();
        }
    }

    /// Gives the machine up.
    pub(super) fn give_up(&self, reason: &str) {
        *self.unusable.borrow_mut() = Some(reason.to_owned());
    }

    /// That no run has hung here.
    ///
    /// # Errors
    /// [`GpuError::Unusable`] with what happened.
    pub fn usable(&self) -> Result<(), GpuError> {
        match &*self.unusable.borrow() {
            None => Ok(()),
            Some(reason) => Err(GpuError::Unusable {
                reason: reason.clone(),
            }),
        }
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        if self.any_lost() {
            self.lose();
        }
    }
}
