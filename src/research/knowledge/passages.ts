/** A part of a document that can be cited. */
export interface Passage {
  /** The headings below which it stands, the highest first. */
  readonly heading: readonly string[];
  /** From 1, as the last one, which is in it, too. */
  readonly first_line: number;
  readonly last_line: number;
  /** The lines as they are, or, of a line that is too long for one passage, a part of it. */
  readonly text: string;
}

/** In UTF-16 units. What begins before is added to a passage, and what would exceed the other is not. */
const USUAL_LENGTH = 1200;
const MOST_LENGTH = 2000;

// Each looks at a character a few times at most, whatever stands there: texts are anybody's.
const HEADING = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/s;
const CLOSING = /(?:^|[ \t])#+$/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Of a line with a heading, and of what is kept of it. */
const LONGEST_LINE = 1000;
const LONGEST_HEADING = 200;

/** Without the mark of byte order that some editors begin a file with. @param most lines. */
export function linesOf(text: string, most?: number): readonly string[] {
  return text.slice(text.startsWith('\uFEFF') ? 1 : 0).split(/\r\n|\n|\r/, most);
}

/** Whether its headings can be told: otherwise all of it is text. */
export function isMarkdown(name: string): boolean {
  return /\.(md|markdown|mdx)$/i.test(name);
}

/** Cuts a text at headings and, where that is too long, between paragraphs, lines, words. */
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
      if (length + line.length > MOST_LENGTH || (isParagraphEnd && length > USUAL_LENGTH)) {
        yield* cut(i);
      }
      if (line.length > MOST_LENGTH) {
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

/** Lines from `from` up to `to`, which is the next one's, as indices. */
interface Section {
  readonly heading: readonly string[];
  readonly from: number;
  readonly to: number;
}

/** Each begins with its heading. */
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

/** Of a line of `#`, or of one below a line of its own that underlines it. */
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

/** Without empty lines around; undefined where there are no others. */
function trimmed(lines: readonly string[], from: number, to: number) {
  let [first, end] = [from, to];
  while (first < end && lines[first]!.trim() === '') first += 1;
  while (end > first && lines[end - 1]!.trim() === '') end -= 1;
  if (first === end) return undefined;
  return { first_line: first + 1, last_line: end, text: lines.slice(first, end).join('\n') };
}

/** Cuts after a space where there is one in the last quarter, and never within a character. */
function* piecesOf(line: string): Generator<string> {
  let from = 0;
  while (from < line.length) {
    let to = Math.min(line.length, from + MOST_LENGTH);
    if (to < line.length) {
      const least = from + MOST_LENGTH * 0.75;
      const space = line.slice(least, to).lastIndexOf(' ') + 1;
      if (space > 0) to = least + space;
      else if (/[\uD800-\uDBFF]/.test(line[to - 1]!)) to -= 1;
    }
    const piece = line.slice(from, to);
    if (piece.trim() !== '') yield piece;
    from = to;
  }
}
