import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isMarkdown, linesOf, passagesOf } from '../../../src/research/knowledge/passages.ts';
import { runs } from '../../length.ts';

function cut(text: string, hasHeadings = true): [heading: string, lines: string][] {
  return Array.from(passagesOf(linesOf(text), hasHeadings), (one) => [
    one.heading.join(' › '),
    `${one.first_line}-${one.last_line}`,
  ]);
}

test('Markdown is split at headings of both styles', () => {
  const text = `---
title: front matter
---

Preface.

Title
=====

One.

Part
----

Two.

### Deep ###

Three.

# Next`;
  expect(cut(text)).toEqual([
    ['', '1-5'],
    ['Title', '7-10'],
    ['Title › Part', '12-15'],
    ['Title › Part › Deep', '17-19'],
    ['Next', '21-21'],
  ]);
  expect(cut(text, false)).toEqual([['', '1-21']]);
});

test('lines in a code fence, and marks without a space, are no headings', () => {
  expect(cut('# A\n\n~~~sh\n# comment\n```\n# comment\n~~~\n\n#hashtag\n\n## B\n')).toEqual([
    ['A', '1-9'],
    ['A › B', '11-11'],
  ]);
});

test('long sections are split between paragraphs, then lines, then words', () => {
  const paragraph = `${'word '.repeat(140).trim()}\n\n`;
  expect(cut(paragraph.repeat(4))).toEqual([
    ['', '1-3'],
    ['', '5-7'],
  ]);
  const lines = `${'word '.repeat(100).trim()}\n`;
  expect(cut(lines.repeat(5))).toEqual([
    ['', '1-4'],
    ['', '5-5'],
  ]);
  const line = '👩‍💻 word '.repeat(1000);
  const pieces = [...passagesOf([line], true)];
  expect(pieces.map(({ text }) => text).join('')).toBe(line);
  expect(pieces.every(({ text }) => text.isWellFormed() && text.length <= 2000)).toBe(true);
});

test('the first line does not contain the byte order mark', () => {
  expect(cut('\uFEFF# Title\r\n\r\nOne.')).toEqual([['Title', '1-3']]);
});

// With backtracking, this would take minutes.
test('splitting takes linear time for any line', { timeout: 10_000 }, () => {
  const tabs = '\t'.repeat(900);
  cut([`#${tabs}\u2028x`, `#${tabs}# ${tabs}x`, `# ${'# '.repeat(450)}x`].join('\n').repeat(50));
  expect(cut('x'.repeat(5 * 1024 * 1024))).toHaveLength(2622);
});

test('lines may end with LF, CR LF or CR', () => {
  expect(linesOf('a\r\nb\nc\rd')).toEqual(['a', 'b', 'c', 'd']);
});

test('Markdown is recognized by the extension of the name', () => {
  const names = ['a.md', 'b/c.MARKDOWN', 'd.mdx', 'e.txt', 'md'];
  expect(names.filter(isMarkdown)).toEqual(['a.md', 'b/c.MARKDOWN', 'd.mdx']);
});

test('every non-empty line is kept unchanged, and only lines too long for one passage are split', () => {
  const part = fc.constantFrom(
    '# H',
    '#',
    '```',
    '===',
    '--',
    '',
    ' ',
    'x',
    'y'.repeat(900),
    '👍'.repeat(1500),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), fc.boolean(), (lines, hasHeadings) => {
      const passages = [...passagesOf(lines, hasHeadings)];
      expect(passages.every(({ text }) => text.length <= 2000)).toBe(true);
      const covered = lines.map((_, i) =>
        passages.filter((one) => one.first_line <= i + 1 && one.last_line >= i + 1),
      );
      for (const [i, line] of lines.entries()) {
        const text = covered[i]!.map((one) => one.text).join('');
        if (line.length > 2000) expect(text).toBe(line);
        else if (line.trim() !== '')
          expect([covered[i]!.length, text.split('\n')]).toEqual([
            1,
            expect.arrayContaining([line]),
          ]);
      }
    }),
    { numRuns: runs(200) },
  );
});
