/**
 * A valid symbol of an instrument: up to 64 visible ASCII characters. Not allowed are `=`, `+`, `-` and
 * `@` at the start, which begin a formula in spreadsheets; property names that every JavaScript object
 * has; and the path segments `.` and `..`, which would lead out of a directory.
 */
export const SYMBOL =
  /^(?![=+@-])(?!(?:__proto__|constructor|prototype)$)(?!(?:.*[/\\])?\.{1,2}(?:[/\\]|$))[!-~]{1,64}$/;

export const SYMBOL_RULE =
  'must be a symbol: up to 64 ASCII characters, no space, no = + - @ at the start, no . or .. between slashes';
