/** A strategy that imports its functions from another copy of the package than the engine's. */
import { afterEach, expect, it, vi } from 'vitest';
import { packageVersion } from '../../src/base/package-version.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Strategy } from '../../src/engine/strategy.ts';
import { PACKAGE_VERSION } from '../../src/engine/version.ts';
import { bars, ENGINE_DEFAULTS } from './market.ts';

type Api = typeof import('../../src/engine/api.ts');

const VERSION_MODULE = '../../src/engine/version.ts';

/** Imports the package again, as another version if one is named. */
async function copyOf(version?: string): Promise<Api> {
  vi.resetModules();
  if (version !== undefined) vi.doMock(VERSION_MODULE, () => ({ PACKAGE_VERSION: version }));
  return import('../../src/engine/api.ts');
}

afterEach(() => vi.doUnmock(VERSION_MODULE));

const closes = [5, 6, 5, 4, 4, 5, 7, 5, 3, 5, 8, 9, 2];

function run(strategy: Strategy): void {
  const instruments = [{ symbol: 'X', bars: bars(closes.map((x) => [x, x, x, x] as const)) }];
  const engine = new Engine({ instruments, strategy, params: {}, config: ENGINE_DEFAULTS });
  while (engine.advance(4));
}

/** Records what declared indicators and conditions of this copy do. */
function seenBy(api: Api): unknown[] {
  const seen: unknown[] = [];
  const { above, any, crossedAbove, crossingBelow, defineStrategy, ema, every, macd, rsi } = api;
  run(
    defineStrategy({
      name: 'copied',
      description: '',
      params: {},
      indicators: ({ instruments: [x] }) => ({
        close: x.close,
        average: ema(rsi(x.close, 2), 2),
        lines: macd(x.close, 2, 3, 2),
      }),
      wakeOn: ({ close, lines }) =>
        any(every(5), above(close, 6), crossingBelow(lines.macd, lines.signal)),
      create: ({ instruments: [x], indicators: { close, average, lines } }) => ({
        onBar: () =>
          seen.push([x.count, crossedAbove(close, 5), average.value, lines.signal.ago(1)]),
      }),
    }),
  );
  return seen;
}

it('a strategy may import another copy of the same version', async () => {
  const seen = seenBy(await copyOf());
  expect(seen.length).toBeGreaterThan(4);
  expect(seen.length).toBeLessThan(closes.length);
  expect(seen).toEqual(seenBy(await import('../../src/engine/api.ts')));
});

it('an indicator of another version is rejected with both versions and the remedy', async () => {
  const api = await copyOf('9.8.7');
  expect(() => seenBy(api)).toThrow(
    `the strategy imports service-local 9.8.7, but runs in service-local ${PACKAGE_VERSION}; install one version for both, for example with: npm install service-local@${PACKAGE_VERSION}`,
  );
});

it('a condition of another version is rejected, too', async () => {
  const { every } = await copyOf('9.8.7');
  const strategy = { name: 'x', description: '', params: {}, wakeOn: () => every(3) };
  expect(() => run({ ...strategy, create: () => ({ onBar() {} }) })).toThrow(
    'the strategy imports service-local 9.8.7',
  );
});

it.each([5, true, {}])('wakeOn must not return %o', (wrong) => {
  const strategy = { name: 'x', description: '', params: {}, wakeOn: () => wrong as never };
  expect(() => run({ ...strategy, create: () => ({ onBar() {} }) })).toThrow(
    'wakeOn must return a condition, such as crossing(a, b)',
  );
});

it.each([
  ['a number', 5],
  ['undefined', undefined],
  ['an object', {}],
  ['bars; use a column of them, such as .close', { close: {} }],
])('the input of an indicator must be a series, not %s', async (kind, wrong) => {
  const { sma } = await import('../../src/engine/api.ts');
  expect(() => sma(wrong as never, 3)).toThrow(
    `expected a series such as asset.close, not ${kind}`,
  );
});

it('an indicator of bars names them if it gets a series', async () => {
  const { atr, correlation } = await import('../../src/engine/api.ts');
  expect(() => atr({} as never)).toThrow('atr needs bars: atr(asset)');
  expect(() => correlation(undefined as never, undefined as never, 3)).toThrow(
    'expected a series such as asset.close, not undefined',
  );
});

it('the version of the engine is that of the package', () => {
  expect(PACKAGE_VERSION).toBe(packageVersion());
});
