/** The rows of a CSV text (RFC 4180) by the names in its first one; cells stay texts. */
export function parseCsv(text: string): readonly Readonly<Record<string, string>>[] {
  const [names = [], ...rows] = text
    .split('\n')
    .filter((line) => line !== '')
    .map(cellsOf);
  return rows.map((cells) => Object.fromEntries(names.map((name, i) => [name, cells[i] ?? ''])));
}

/** No cell of ours holds a line feed. */
function cellsOf(line: string): string[] {
  const cells = line.match(/("([^"]|"")*"|[^,]*)(,|$)/g) ?? [];
  return cells.slice(0, line.endsWith(',') ? undefined : -1).map((cell) => {
    const text = cell.replace(/,$/, '');
    return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
  });
}
