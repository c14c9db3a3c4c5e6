import { expect, test } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { LogLine } from '../../src/engine/strategy-log.ts';
import { bars, DAY, ENGINE_DEFAULTS, flat, START } from './market.ts';

/** Runs a strategy that buys at each bar and calls `write` with `log`, over this many bars. */
function runThat(write: (log: (message: string) => void) => void, keepsLog: boolean, count = 2) {
  const strategy = defineStrategy({
    name: 'own',
    description: 'Of a test.',
    params: {},
    create: ({ instruments: [asset], broker, log }) => ({
      onBar() {
        broker.order({ instrument: asset, side: 'buy', quantity: 1 });
        write(log);
      },
    }),
  });
  const instruments = [{ symbol: 'A', bars: bars(flat(count)) }];
  const config = ENGINE_DEFAULTS;
  const engine = new Engine({ instruments, strategy, params: {}, config, keepsLog });
  engine.advance(Infinity);
  return engine.result();
}

const textsOf = (log: readonly LogLine[] = []): string[] => log.map(({ text }) => text);

test('the log has the time of the bar of each line, and changes no event', () => {
  const write = (log: (message: string) => void): void => log('bought');
  const { log, journal } = runThat(write, true);
  expect(log).toEqual([
    { step: 0, time: START, text: 'bought' },
    { step: 1, time: START + DAY, text: 'bought' },
  ]);
  const without = runThat(write, false);
  expect(without.log).toBeUndefined();
  expect([...without.journal.events()]).toEqual([...journal.events()]);
});

test('the log cuts long lines and too many lines, and marks both cuts', () => {
  const { log } = runThat((write) => {
    for (let at = 0; at < 1000; at += 1) write('x'.repeat(at + 395));
  }, true);
  const first = textsOf(log).slice(0, 21);
  expect(first[5]).toBe('x'.repeat(400));
  expect(first[6]).toBe(`${'x'.repeat(400)}…`);
  expect(first[20]).toBe('[only 20 lines of a bar are kept]');
  expect(log).toHaveLength(42);
  const whole = textsOf(runThat((write) => write('line'), true, 20_002).log);
  expect(whole).toHaveLength(20_001);
  expect(whole.at(-1)).toBe('[only 20000 lines of a run are kept]');
});

test('a line cannot control a terminal or begin another line', () => {
  const { log } = runThat((write) => write('a\r\nb\u001b[31mc\td\u2028e\ud800'), true, 1);
  expect(textsOf(log)).toEqual(['a b [31mc\td e\ufffd']);
});

test('a line that is not a string fails the strategy, whether or not lines are kept', () => {
  const write = (log: (message: string) => void): void => log(1 as unknown as string);
  for (const keepsLog of [true, false]) {
    expect(() => runThat(write, keepsLog)).toThrow(/log needs a string/);
  }
});
