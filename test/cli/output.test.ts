import { describe, expect, it } from 'vitest';
import {
  formatDuration,
  formatProgress,
  formatTable,
  makeOutput,
  makeProgress,
  makeStyle,
  wantsColor,
} from '../../src/cli/output.ts';

const plain = await makeStyle(false);
const coloured = await makeStyle(true);

describe('a table', () => {
  const columns = [
    { title: 'symbol' },
    { title: 'return', align: 'right' },
    { title: 'note' },
  ] as const;

  it('aligns text left and numbers right, without trailing spaces', () => {
    const rows = [
      ['SPX', '1.50 %', 'fine'],
      ['A', '-12.25 %', 'poor'],
    ];
    expect(formatTable(columns, rows, plain)).toBe(
      ['symbol    return  note', 'SPX       1.50 %  fine', 'A       -12.25 %  poor', ''].join('\n'),
    );
  });

  it('prints each row as a list if it is too wide, and truncates nothing', () => {
    const rows = [
      ['SPX', '1234567.89', 'a long remark that does not fit'],
      ['A', '-1', 'x'],
    ];
    const whole = formatTable(columns, rows, plain);
    expect(formatTable(columns, rows, plain, 51)).toBe(whole);
    expect(formatTable(columns, rows, plain, 50)).toBe(
      [
        'symbol  SPX',
        'return  1234567.89',
        'note    a long remark that does not fit',
        '',
        'symbol  A',
        'return  -1',
        'note    x',
        '',
      ].join('\n'),
    );
  });

  it('keeps its form if it has names and values, however wide', () => {
    const pairs = [{ title: 'about' }, { title: 'SPX' }];
    const rows = [['sha256', 'a'.repeat(64)]];
    expect(formatTable(pairs, rows, plain, 20)).toBe(formatTable(pairs, rows, plain));
  });

  it('aligns by visible text, not by color codes', () => {
    const rows = [['A', { text: '-1', paint: coloured.red }, 'x']];
    expect(formatTable(columns, rows, plain)).toContain(`A           ${coloured.red('-1')}  x`);
  });

  it('removes line feeds and escape sequences of the data', () => {
    const rows = [['A\nB', '1', '\u001B[2Jgone\u0007']];
    expect(formatTable(columns, rows, plain).split('\n')[1]).toBe('A B          1  gone ');
  });
});

describe('a table without titles', () => {
  it('has no title line', () => {
    const columns = [{ title: '' }, { title: '', align: 'right' }] as const;
    expect(formatTable(columns, [['trades', '12']], plain)).toBe('trades  12\n');
  });
});

describe('a line', () => {
  const HOSTILE = '\u001B[2J\u001B]0;title\u0007\u009B1mbot\u0008\r';

  it.each([
    ['with', coloured, `${coloured.red('red')} ${coloured.bold('bot')}`],
    ['without', plain, 'red bot'],
  ])('removes control characters of the data %s color', (_, style, expected) => {
    let written = '';
    const out = makeOutput({ write: (text) => (written += text) }, style);
    out.line(`${style.red('red')} ${style.bold(HOSTILE)}`);
    out.line('one\n\ttwo');
    expect(written.replaceAll(' ', '')).toBe(`${expected}\none\n\ttwo\n`.replaceAll(' ', ''));
  });
});

describe('a duration', () => {
  it.each([
    [0.4, '0 ms'],
    [340, '340 ms'],
    [999.6, '1 s'],
    [9_499, '9 s'],
    [59_600, '1 min 00 s'],
    [125_000, '2 min 05 s'],
    [3_599_700, '1 h 00 min'],
    [4_320_000, '1 h 12 min'],
  ])('%d milliseconds are %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe('progress', () => {
  const WIPE = '\r\u001B[K';

  it('shows the share done and the time left', () => {
    const halfway = { before: 0, done: 43, total: 172 };
    expect(formatProgress('sweep', halfway, 3000)).toBe(
      'sweep ██████░░░░░░░░░░░░░░░░░░ 25 % 43/172 9 s left',
    );
    const atStart = { before: 0, done: 0, total: 172 };
    expect(formatProgress('sweep', atStart, 3000)).toBe(`sweep ${'░'.repeat(24)} 0 % 0/172`);
  });

  it('computes the speed from the work of this run', () => {
    const resumed = { before: 150, done: 160, total: 170 };
    expect(formatProgress('sweep', resumed, 5000)).toMatch(/ 94 % 160\/170 5 s left$/);
  });

  it('is drawn at most ten times per second on a terminal, and cleared at the end', () => {
    const written: string[] = [];
    const terminal = { isTTY: true, columns: 20, write: (text: string) => written.push(text) };
    let now = 0;
    const progress = makeProgress(terminal, 'sweep', 100, 0, () => now);
    expect(written).toHaveLength(1);
    for (now = 0; now < 1000; now += 10) progress.update(now / 10);
    expect(written).toHaveLength(10);
    for (const text of written) expect(text.replace(WIPE, '')).toMatch(/^sweep [█░]{13}$/);
    progress.stop();
    expect(written.at(-1)).toBe(WIPE);
  });

  it('prints nothing if the stream is not a terminal', () => {
    const written: string[] = [];
    const progress = makeProgress({ write: (text) => written.push(text) }, 'sweep', 100);
    progress.update(50);
    progress.stop();
    expect(written).toEqual([]);
  });
});

describe('color', () => {
  const terminal = { isTTY: true };

  it.each([
    ['auto', {}, terminal, true],
    ['auto', {}, {}, false],
    ['auto', { NO_COLOR: '1' }, terminal, false],
    ['auto', { NO_COLOR: '' }, terminal, true],
    ['auto', { TERM: 'dumb' }, terminal, false],
    ['auto', { FORCE_COLOR: '1', NO_COLOR: '1' }, {}, true],
    ['auto', { FORCE_COLOR: '0' }, terminal, false],
    ['always', { NO_COLOR: '1' }, {}, true],
    ['never', { FORCE_COLOR: '1' }, terminal, false],
  ] as const)('%s with %j on %j: %s', (setting, env, stream, wanted) => {
    expect(wantsColor(setting, env, stream)).toBe(wanted);
  });
});
