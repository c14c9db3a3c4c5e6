/**
 * Formats a value as a cell of a CSV line (RFC 4180). A text that a spreadsheet would run as a formula
 * gets a leading apostrophe, as OWASP recommends. Numbers do not.
 */
export function csvCell(value: string | number | boolean): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
