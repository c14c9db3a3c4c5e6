/** A part of a document that can be cited. */
export interface Passage {
  /** Headings above the passage, outermost first. */
  readonly heading: readonly string[];
  /** Counted from 1; both lines are part of the passage. */
  readonly first_line: number;
  readonly last_line: number;
  /** Unchanged lines, or a part of one line that is too long for a passage. */
  readonly text: string;
}

/** In UTF-16 units. A passage longer than the first ends at the next paragraph; none exceeds the second. */
const TARGET_LENGTH = 1200;
const MAX_LENGTH = 2000;

// Each runs in linear time, because texts are not trusted.
const HEADING = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/s;
const CLOSING = /(?:^|[ \t])#+$/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Longer lines are no headings; longer headings are cut. */
const LONGEST_LINE = 1000;
const LONGEST_HEADING = 200;

/** Splits a text into at most `most` lines and removes a byte order mark. */
export function linesOf(text: string, most?: number): readonly string[] {
  return text.slice(text.startsWith('\uFEFF') ? 1 : 0).split(/\r\n|\n|\r/, most);
}

/** Whether the name of a document is that of a Markdown file, whose headings are recognized. */
export function isMarkdown(name: string): boolean {
  return /\.(md|markdown|mdx)$/i.test(name);
}

/** Splits a text at headings, and long sections between paragraphs, lines or words. */
export function* passagesOf(lines: readonly string[], hasHeadings: boolean): Generator<Passage> {
  for (const { heading, from, to } of sectionsOf(lines, hasHeadings)) {
    let first = from;
    let length = 0;
    const cut = (next: number): Passage[] => {
      const passage = trimmed(lines, first, next);
      first = next;
      length = 0;
      return passage === undefined ? [] : [{ heading, ...passage }];
    };
    for (let i = from; i < to; i += 1) {
      const line = lines[i]!;
      const isParagraphEnd = i > from && lines[i - 1]!.trim() === '' && line.trim() !== '';
      if (length + line.length > MAX_LENGTH || (isParagraphEnd && length > TARGET_LENGTH)) {
        yield* cut(i);
      }
      if (line.length > MAX_LENGTH) {
        for (const text of piecesOf(line)) {
          yield { heading, first_line: i + 1, last_line: i + 1, text };
        }
        first = i + 1;
      } else {
        length += line.length + 1;
      }
    }
    yield* cut(to);
  }
}

/** Lines from index `from` to `to`, exclusive. */
interface Section {
  readonly heading: readonly string[];
  readonly from: number;
  readonly to: number;
}

function* sectionsOf(lines: readonly string[], hasHeadings: boolean): Generator<Section> {
  let heading: readonly { readonly level: number; readonly text: string }[] = [];
  let from = 0;
  const section = (to: number): Section => ({ heading: heading.map(({ text }) => text), from, to });
  let fence: string | undefined;
  for (const [i, line] of hasHeadings ? lines.entries() : []) {
    const [, mark] = FENCE.exec(line) ?? [];
    if (mark !== undefined) {
      if (fence === undefined) fence = mark;
      else if (mark.startsWith(fence)) fence = undefined;
    }
    const found = fence === undefined ? headingAt(lines, i) : undefined;
    if (found === undefined) continue;
    if (found.line > from) yield section(found.line);
    const { level, text } = found;
    heading = [...heading.filter((above) => above.level < level), { level, text }];
    from = found.line;
  }
  yield section(lines.length);
}

/** Recognizes `# Heading`, and a single line underlined with `=` or `-`. */
function headingAt(lines: readonly string[], i: number) {
  const line = lines[i]!;
  if (line === '' || line.length > LONGEST_LINE) return undefined;
  const [, marks, rest = ''] = HEADING.exec(line) ?? [];
  if (marks !== undefined) {
    const text = rest.trim().replace(CLOSING, '').trim();
    return { level: marks.length, text: text.slice(0, LONGEST_HEADING), line: i };
  }
  const [, under] = UNDERLINE.exec(line) ?? [];
  const above = lines[i - 1]?.trim() ?? '';
  const isAlone = above !== '' && (lines[i - 2] ?? '').trim() === '';
  if (under === undefined || !isAlone || above.length > LONGEST_LINE) return undefined;
  if (HEADING.test(above) || UNDERLINE.test(above)) return undefined;
  const level = under.startsWith('=') ? 1 : 2;
  return { level, text: above.slice(0, LONGEST_HEADING), line: i - 1 };
}

/** Removes empty lines around a passage; undefined if no others remain. */
function trimmed(lines: readonly string[], from: number, to: number) {
  let [first, end] = [from, to];
  while (first < end && lines[first]!.trim() === '') first += 1;
  while (end > first && lines[end - 1]!.trim() === '') end -= 1;
  if (first === end) return undefined;
  return { first_line: first + 1, last_line: end, text: lines.slice(first, end).join('\n') };
}

/** Cuts after a space in the last quarter if possible, and never within a character. */
function* piecesOf(line: string): Generator<string> {
  let from = 0;
  while (from < line.length) {
    let to = Math.min(line.length, from + MAX_LENGTH);
    if (to < line.length) {
      const least = from + MAX_LENGTH * 0.75;
      const space = line.slice(least, to).lastIndexOf(' ') + 1;
      if (space > 0) to = least + space;
      else if (/[\uD800-\uDBFF]/.test(line[to - 1]!)) to -= 1;
    }
    const piece = line.slice(from, to);
    if (piece.trim() !== '') yield piece;
    from = to;
  }
}
