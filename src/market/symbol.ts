/**
 * What an instrument may be called: up to 64 visible ASCII characters. Spreadsheets take `=`, `+`,
 * `-` and `@` at the start of a cell for a formula; the three names every object of JavaScript has.
 * A segment `.` or `..` would lead out of a directory if the symbol is part of a path.
 */
export const SYMBOL =
  /^(?![=+@-])(?!(?:__proto__|constructor|prototype)$)(?!(?:.*[/\\])?\.{1,2}(?:[/\\]|$))[!-~]{1,64}$/;

export const SYMBOL_RULE =
  'must be a symbol: up to 64 ASCII characters, no space, no = + - @ at the start, no . or .. between slashes';
