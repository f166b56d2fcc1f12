//! Reading `name:param=value,param=value`.

use crate::input::did_you_mean;

use super::{Choice, Params, Strategy, registry};

/// What is wrong with a strategy as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy of this name.
    #[error("unknown strategy `{name}`: {hint}")]
    Unknown { name: String, hint: String },
    /// The strategy has no such parameter.
    #[error("`{strategy}` has no parameter `{param}`: {hint}")]
    UnknownParam {
        strategy: &'static str,
        param: String,
        hint: String,
    },
    /// A parameter's value is not allowed.
    #[error("`{param}={value}` of `{strategy}`: use {allowed}")]
    Value {
        strategy: &'static str,
        param: &'static str,
        value: String,
        allowed: String,
    },
    /// A parameter without a value.
    #[error("`{text}` of `{strategy}` has no value: write PARAM=VALUE")]
    NoValue {
        strategy: &'static str,
        text: String,
    },
    /// A parameter is set twice.
    #[error("`{param}` of `{strategy}` is set twice: keep one")]
    Twice {
        strategy: &'static str,
        param: &'static str,
    },
}

/// Reads a strategy with its parameters, e.g. `interdecom:d=8,comm=direct`.
///
/// # Errors
/// [`StrategyError`], with the nearest name where there is one.
pub fn parse(text: &str) -> Result<Choice, StrategyError> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let strategy = *registry()
        .iter()
        .find(|strategy| strategy.name() == name)
        .ok_or_else(|| StrategyError::Unknown {
            name: name.to_owned(),
            hint: did_you_mean(name, registry().iter().map(|strategy| strategy.name())),
        })?;
    Ok(Choice {
        strategy,
        params: settings(strategy, rest)?,
    })
}

/// Reads `param=value,…` over the defaults of `strategy`.
pub(super) fn settings(
    strategy: &'static dyn Strategy,
    text: &str,
) -> Result<Params, StrategyError> {
    let declared = strategy.params();
    let mut params = Params::defaults(declared);
    let mut seen = vec![false; declared.len()];
    let strategy = strategy.name();
    for setting in text.split(',').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| StrategyError::NoValue {
                strategy,
                text: setting.to_owned(),
            })?;
        let index = declared
            .iter()
            .position(|param| param.name == name)
            .ok_or_else(|| StrategyError::UnknownParam {
                strategy,
                param: name.to_owned(),
                hint: did_you_mean(name, declared.iter().map(|param| param.name)),
            })?;
        let param = &declared[index];
        if std::mem::replace(&mut seen[index], true) {
            return Err(StrategyError::Twice {
                strategy,
                param: param.name,
            });
        }
        let value = param
            .values
            .read(value)
            .ok_or_else(|| StrategyError::Value {
                strategy,
                param: param.name,
                value: value.to_owned(),
                allowed: param.values.to_string(),
            })?;
        params.set(index, value);
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        parse(text).expect_err("must be refused").to_string()
    }

    #[test]
    fn errors_suggest_the_nearest() {
        assert_eq!(
            said("sequental"),
            "unknown strategy `sequental`: did you mean `sequential`?"
        );
        assert!(said("nonsense-without-likeness").contains("known are `sequential`, "));
        assert_eq!(
            said("ring:mver=ce"),
            "`ring` has no parameter `mver`: did you mean `mover`?"
        );
        assert_eq!(
            said("sequential:d=2"),
            "`sequential` has no parameter `d`: known are none"
        );
        assert_eq!(
            said("ring:mover=sm:0"),
            "`mover=sm:0` of `ring`: use ce, sm or sm:BLOCKS (1 to 1024)"
        );
        assert_eq!(
            said("ring:mover"),
            "`mover` of `ring` has no value: write PARAM=VALUE"
        );
        assert_eq!(
            said("ring:mover=ce,mover=sm"),
            "`mover` of `ring` is set twice: keep one"
        );
    }

    #[test]
    fn choices_print_as_written() {
        for text in ["sequential", "ring", "ring:mover=sm:4"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("ring:mover=ce").unwrap().to_string(), "ring");
    }
}
