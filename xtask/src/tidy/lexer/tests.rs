//! Tests of the lexer: what is code, what is comment, where a function ends.
//! In: short Rust texts → out: the two views and the functions found in them.
//! Uses nothing but the lexer; never reads a file.
//! Tests of the checks that use these views stand with the checks.

use super::*;

fn check(text: &str, code: &str, comments: &str) {
    let lexed = lex(text);
    assert_eq!(lexed.code.trim(), code, "code of {text:?}");
    assert_eq!(lexed.comments.trim(), comments, "comments of {text:?}");
    assert_eq!(lexed.code.matches('\n').count(), text.matches('\n').count());
}

#[test]
fn line_comments_end_with_their_line() {
    check("a(); // b()", "a();", "// b()");
}

#[test]
fn block_comments_nest() {
    check("/* a /* b */ c */ d", "d", "/* a /* b */ c */");
}

#[test]
fn strings_hide_what_stands_in_them() {
    check(r#"f("// unsafe \" {", x)"#, &format!("f({}, x)", " ".repeat(16)), "");
}

#[test]
fn raw_strings_end_at_their_own_hashes() {
    check(r###"f(r#"a " {"#)"###, &format!("f({})", " ".repeat(10)), "");
    check(r#"bright("x")"#, "bright(   )", "");
}

#[test]
fn lifetimes_are_code_and_characters_are_literals() {
    check("fn f<'a>(c: &'a str) { c == '{' }", "fn f<'a>(c: &'a str) { c ==     }", "");
    check(r"x == '\'' // q", "x ==", "// q");
}

#[test]
fn a_function_is_as_long_as_its_lines_from_signature_to_brace() {
    let code = "impl X {\n    fn a(\n        b: [u8; 4],\n    ) -> u8 {\n        match b { _ => 1 }\n    }\n}\n";
    assert_eq!(functions(code), [Function { name: "a".into(), line: 2, lines: 5 }]);
}

#[test]
fn functions_without_a_body_are_passed_over() {
    assert_eq!(functions("trait T { fn a(&self) -> [u8; 4]; }\ntype F = fn(u8);\n"), []);
}

#[test]
fn nested_functions_are_found_too() {
    let found = functions("fn a() {\n    fn b() {}\n}\n");
    assert_eq!(found.iter().map(|f| f.lines).collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn words_are_whole_words() {
    assert!(has_word("unsafe { }", "unsafe"));
    assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
}
