/**
 * A value as one cell of a CSV line (RFC 4180). A text that a spreadsheet would run as a formula gets
 * an apostrophe before it, as OWASP advises; a number never does.
 */
export function csvCell(value: string | number | boolean): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
