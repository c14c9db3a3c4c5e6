/**
 * What an instrument may be called: up to 64 visible ASCII characters. Spreadsheets take `=`, `+`,
 * `-` and `@` at the start of a cell for a formula; the three names every object of JavaScript has.
 */
export const SYMBOL = /^(?![=+@-])(?!(?:__proto__|constructor|prototype)$)[!-~]{1,64}$/;
