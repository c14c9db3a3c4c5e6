import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isMarkdown, linesOf, passagesOf } from '../../../src/research/knowledge/passages.ts';
import { runs } from '../../length.ts';

/** Headings and lines of each passage. */
function cut(text: string, hasHeadings = true): [heading: string, lines: string][] {
  return Array.from(passagesOf(linesOf(text), hasHeadings), (one) => [
    one.heading.join(' › '),
    `${one.first_line}-${one.last_line}`,
  ]);
}

test('Markdown is cut at its headings, whichever way they are written', () => {
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

test('what stands in a fence is no heading, nor what has no space behind its marks', () => {
  expect(cut('# A\n\n~~~sh\n# comment\n```\n# comment\n~~~\n\n#hashtag\n\n## B\n')).toEqual([
    ['A', '1-9'],
    ['A › B', '11-11'],
  ]);
});

test('what is long is cut between paragraphs, then lines, then words', () => {
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

test('a mark of byte order is none of the first line', () => {
  expect(cut('\uFEFF# Title\r\n\r\nOne.')).toEqual([['Title', '1-3']]);
});

// Minutes, where what stands in a line is looked at again and again.
test('no line takes longer than its length', { timeout: 10_000 }, () => {
  const tabs = '\t'.repeat(900);
  cut([`#${tabs}\u2028x`, `#${tabs}# ${tabs}x`, `# ${'# '.repeat(450)}x`].join('\n').repeat(50));
  expect(cut('x'.repeat(5 * 1024 * 1024))).toHaveLength(2622);
});

test('lines end as files of all systems have it', () => {
  expect(linesOf('a\r\nb\nc\rd')).toEqual(['a', 'b', 'c', 'd']);
});

test('a name tells what is Markdown', () => {
  const names = ['a.md', 'b/c.MARKDOWN', 'd.mdx', 'e.txt', 'md'];
  expect(names.filter(isMarkdown)).toEqual(['a.md', 'b/c.MARKDOWN', 'd.mdx']);
});

test('every line that is not empty is in one passage, as it is, and none is too long', () => {
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
