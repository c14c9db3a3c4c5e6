/** Text that comes from the code, outside of code spans, with what Markdown or Vue would interpret escaped. */
export function prose(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) =>
      part.startsWith('`') ? part : part.replaceAll(/[<*]|(?<!\w)_|_(?!\w)/g, '\\$&'),
    )
    .join('');
}

/** The text as a sentence: with a capital letter and a final period. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const end = /[.!?:]$/.test(trimmed) ? '' : '.';
  return prose(`${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}${end}`);
}

export function code(text: string): string {
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``;
}

/** A value of JSON as code; texts without quotes. */
export function literal(value: unknown): string {
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Paragraphs, headings and lists with one empty line between them. */
export function blocks(...parts: readonly (string | readonly string[] | undefined)[]): string {
  return parts
    .flat()
    .filter((part) => part !== undefined && part !== '')
    .join('\n\n');
}

export function bullets(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join('\n');
}

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** The id that GitHub and VitePress give to a heading of plain words. */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .trim()
    .replaceAll(/\s+/g, '-');
}
