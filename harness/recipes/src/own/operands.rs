//! Limits the length of a query and of its operator chains. Parser and engine recurse along a chain such as `a + 1 +
//! 1`, and a chain of thousands overflows the stack.

use super::sql::SqlError;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// Bytes of a query.
const LONGEST: usize = 64 << 10;

/// Operators between two commas, on one level of parentheses.
const CHAIN: usize = 200;

/// Operators of the whole query.
const ALL: usize = 1_000;

pub(super) fn check_length(text: &str) -> Result<(), SqlError> {
    if text.len() <= LONGEST {
        return Ok(());
    }
    let message = format!("query of {} bytes, limit {LONGEST}", text.len());
    Err(SqlError::at(Location::new(1, 1), message))
}

pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut levels = vec![0];
    let mut all = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => levels.push(0),
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                levels.pop();
            }
            Token::Comma => levels.last_mut().into_iter().for_each(|chain| *chain = 0),
            token if strings_together(token) => {
                all += 1;
                levels.last_mut().into_iter().for_each(|chain| *chain += 1);
            }
            _ => {}
        }
        let most = [(levels.last().copied().unwrap_or_default(), CHAIN, "in a row"), (all, ALL, "in all")];
        if let Some((_, most, how)) = most.into_iter().find(|(count, most, _)| count > most) {
            let message = format!("more than {most} operators {how} in one query");
            return Err(SqlError::at(token.span.start, message).hint("write a recipe of several steps"));
        }
    }
    Ok(())
}

fn strings_together(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::BETWEEN
                | Keyword::JOIN
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::COLLATE
        ),
        Token::EOF
        | Token::Number(..)
        | Token::Char(_)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::Whitespace(_)
        | Token::Period
        | Token::SemiColon
        | Token::Placeholder(_)
        | Token::RParen
        | Token::RBracket
        | Token::RBrace => false,
        _ => true,
    }
}
