//! One TOML value with its path and place, read as what is needed there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use killpoint_model::Span;
use killpoint_model::diagnostic::UnknownWord;
use killpoint_model::plan::duration_ms;
use toml::de::DeValue;

use crate::code::Code;
use crate::duration;
use crate::log::{Log, Placed};
use crate::table::Table;

#[derive(Debug, Clone)]
pub(crate) struct Item<'d> {
    pub(crate) path: String,
    pub(crate) span: Span,
    value: &'d DeValue<'d>,
}

impl<'d> Item<'d> {
    pub(crate) fn new(path: String, value: &'d toml::Spanned<DeValue<'d>>) -> Self {
        let range = value.span();
        Self { path, span: Span { start: range.start, end: range.end }, value: value.get_ref() }
    }

    pub(crate) fn wrong_type(&self, needed: &str, help: &str, log: &mut Log) {
        let found = match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{}` is {found}; {needed} is needed", self.path);
        log.error(Code::WrongType, self.span, message, help);
    }

    pub(crate) fn as_text(&self) -> Option<Placed<&'d str>> {
        match self.value {
            DeValue::String(text) => Some(Placed { value: text.as_ref(), span: self.span }),
            _ => None,
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self.value, DeValue::Integer(_))
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// The elements of a list.
    pub(crate) fn elements(&self) -> Option<Vec<Item<'d>>> {
        let DeValue::Array(elements) = self.value else { return None };
        let element = |(index, value): (usize, _)| Item::new(format!("{}[{index}]", self.path), value);
        Some(elements.iter().enumerate().map(element).collect())
    }

    pub(crate) fn table(&self, log: &mut Log) -> Option<Table<'d>> {
        if let DeValue::Table(entries) = self.value {
            return Some(Table::new(self.path.clone(), self.span, entries));
        }
        self.wrong_type("a table", "write `{ key = value }`, or a section of its own", log);
        None
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, log: &mut Log) -> Option<Placed<&'d str>> {
        let text = self.any_text(log)?;
        if text.value.trim().is_empty() {
            log.error(Code::EmptyValue, self.span, format!("`{}` is empty", self.path), "write a text here");
            return None;
        }
        Some(text)
    }

    /// A text, empty or not, without the one character that no argument, variable or path can carry.
    pub(crate) fn any_text(&self, log: &mut Log) -> Option<Placed<&'d str>> {
        let Some(text) = self.as_text() else {
            let help = match self.value {
                DeValue::Integer(number) => format!("write it in quotes: `\"{number}\"`"),
                DeValue::Boolean(flag) => format!("write it in quotes: `\"{flag}\"`"),
                _ => "write a text in quotes".to_owned(),
            };
            self.wrong_type("a text", &help, log);
            return None;
        };
        if text.value.contains('\0') {
            log.error(
                Code::BadText,
                self.span,
                format!("`{}` holds a zero byte", self.path),
                "remove `\\u0000`",
            );
            return None;
        }
        Some(text)
    }

    pub(crate) fn flag(&self, log: &mut Log) -> Option<bool> {
        if let DeValue::Boolean(flag) = self.value {
            return Some(*flag);
        }
        self.wrong_type("true or false", "write `true` or `false`, without quotes", log);
        None
    }

    /// A whole number within limits.
    pub(crate) fn number(&self, limits: RangeInclusive<i64>, log: &mut Log) -> Option<i64> {
        let DeValue::Integer(number) = self.value else {
            self.wrong_type("a whole number", "write digits without quotes", log);
            return None;
        };
        let value = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let value = value.filter(|value| limits.contains(value));
        if value.is_none() {
            let message = format!("`{}` is {number}", self.path);
            let help = format!("write a number from {} to {}", limits.start(), limits.end());
            log.error(Code::OutOfRange, self.span, message, help);
        }
        value
    }

    /// A list of small whole numbers within limits: `what` they are, and an `example` of one.
    pub(crate) fn numbers<T: TryFrom<i64>>(
        &self,
        what: &str,
        example: &str,
        limits: RangeInclusive<i64>,
        log: &mut Log,
    ) -> Option<Vec<T>> {
        let Some(elements) = self.elements() else {
            self.wrong_type(&format!("a list of {what}"), &format!("write a list: `[{example}]`"), log);
            return None;
        };
        let numbers = elements.iter().filter_map(|element| element.number(limits.clone(), log));
        Some(numbers.filter_map(|number| T::try_from(number).ok()).collect())
    }

    /// A duration in milliseconds, within limits.
    pub(crate) fn duration(&self, limits_ms: RangeInclusive<u64>, log: &mut Log) -> Option<u64> {
        if let DeValue::Integer(number) = self.value {
            let help = format!("write it with a unit: `\"{number}s\"` or `\"{number}ms\"`");
            self.wrong_type("a duration", &help, log);
            return None;
        }
        let text = self.any_text(log)?;
        let Some(ms) = duration_ms(text.value) else {
            let help = duration::guess(text.value).map_or_else(
                || "write a whole number and a unit (ms, s, m, h), such as `50ms`".to_owned(),
                |guess| format!("did you mean `{guess}`?"),
            );
            log.error(Code::BadDuration, self.span, format!("`{}` is no duration", text.value), help);
            return None;
        };
        if !limits_ms.contains(&ms) {
            let (low, high) = (duration::show(*limits_ms.start()), duration::show(*limits_ms.end()));
            let help = format!("write a duration from {low} to {high}");
            log.error(Code::OutOfRange, self.span, format!("`{}` is {}", self.path, text.value), help);
            return None;
        }
        Some(ms)
    }

    /// A word of a closed list.
    pub(crate) fn word<T: FromStr<Err = UnknownWord>>(&self, what: &str, log: &mut Log) -> Option<T> {
        let text = self.text(log)?;
        match text.value.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let known: Vec<&str> = error.known.iter().map(String::as_str).collect();
                log.unknown_word(what, &text, &known);
                None
            }
        }
    }

    /// A name out of `known`.
    pub(crate) fn name(&self, what: &str, known: &[&str], log: &mut Log) -> Option<String> {
        let text = self.text(log)?;
        if !known.contains(&text.value) {
            log.unknown_word(what, &text, known);
            return None;
        }
        Some(text.value.to_owned())
    }

    /// A list of texts. `None` where the value is no list; elements that are no texts are left out, with
    /// an error each.
    pub(crate) fn texts(&self, log: &mut Log) -> Option<Vec<Placed<&'d str>>> {
        let Some(elements) = self.elements() else {
            let help = match self.as_text() {
                Some(text) => {
                    let words: Vec<String> = text
                        .value
                        .split_whitespace()
                        .map(|word| toml::Value::from(word).to_string())
                        .collect();
                    format!("write a list: `[{}]`", words.join(", "))
                }
                None => "write a list: `[\"…\", \"…\"]`".to_owned(),
            };
            self.wrong_type("a list of texts", &help, log);
            return None;
        };
        Some(elements.iter().filter_map(|element| element.any_text(log)).collect())
    }

    /// One text, or a list of texts that is not empty.
    pub(crate) fn text_or_texts(&self, log: &mut Log) -> Option<Vec<Placed<&'d str>>> {
        let elements = match self.elements() {
            None => vec![self.clone()],
            Some(elements) if !elements.is_empty() => elements,
            Some(_) => {
                log.error(
                    Code::EmptyValue,
                    self.span,
                    format!("`{}` is empty", self.path),
                    "write one text at least",
                );
                return None;
            }
        };
        Some(elements.iter().filter_map(|element| element.text(log)).collect())
    }

    /// A table of texts under names that the user chooses.
    pub(crate) fn text_map(&self, log: &mut Log) -> Option<BTreeMap<String, Placed<&'d str>>> {
        let entries = self.table(log)?.entries();
        let entry = |(key, _, item): (&str, Span, Item<'d>)| Some((key.to_owned(), item.any_text(log)?));
        Some(entries.into_iter().filter_map(entry).collect())
    }

    /// The value as JSON, for parameters that another part understands.
    pub(crate) fn json(&self, log: &mut Log) -> Option<serde_json::Value> {
        use serde_json::Value;
        Some(match self.value {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Integer(_) => Value::from(self.number(i64::MIN..=i64::MAX, log)?),
            DeValue::Float(number) => Value::from(number.as_str().parse::<f64>().ok()),
            DeValue::Boolean(flag) => Value::from(*flag),
            DeValue::Array(_) => {
                Value::Array(self.elements()?.iter().filter_map(|element| element.json(log)).collect())
            }
            DeValue::Table(_) => {
                let entries = self.table(log)?.entries();
                let entry = |(key, _, item): (&str, Span, Item)| Some((key.to_owned(), item.json(log)?));
                Value::Object(entries.into_iter().filter_map(entry).collect())
            }
            DeValue::Datetime(_) => {
                self.wrong_type(
                    "a text, a number, true or false, a list or a table",
                    "write it in quotes",
                    log,
                );
                return None;
            }
        })
    }
}

/// Puts what was read in the place of a default.
pub(crate) fn set<T>(target: &mut T, read: Option<T>) {
    if let Some(value) = read {
        *target = value;
    }
}

/// Puts a number that is known to be small in the place of a default.
pub(crate) fn set_u32(target: &mut u32, read: Option<i64>) {
    set(target, read.and_then(|number| u32::try_from(number).ok()));
}
