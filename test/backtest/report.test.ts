import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  formatInstant,
  formatMoney,
  formatNumber,
  formatPercent,
  formatPrice,
} from '../../src/base/format.ts';
import { html } from '../../src/base/html.ts';
import { compareRuns } from '../../src/backtest/compare/compare-runs.ts';
import { overlayCurves } from '../../src/backtest/compare/overlaid-curves.ts';
import { renderComparison } from '../../src/backtest/compare/render-comparison.ts';
import { sharedWindow } from '../../src/backtest/compare/shared-window.ts';
import { renderFork } from '../../src/backtest/compare/render-fork.ts';
import { renderSweepReport } from '../../src/backtest/report/sweep-report.ts';
import { startChromium } from '../chromium.ts';
import { inProcess } from '../cli/in-process.ts';
import { isAtLength } from '../length.ts';
import {
  type HashedInput,
  renderReport,
  syntheticIndicators,
  syntheticRun,
  syntheticSweep,
} from './report-fixture.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

it('figures are readable and never minus zero', () => {
  expect(formatPercent(0.1234)).toBe('12.34%');
  expect(formatPercent(-0.00001)).toBe('0.00%');
  expect(formatMoney(-1234.5)).toBe('−1,234.50');
  expect(formatMoney(0.00012345)).toBe('0.00012345');
  expect([1455.2234, 1.083456, 0.000012345678, 0].map(formatPrice)).toEqual([
    '1,455.22',
    '1.08346',
    '0.0000123457',
    '0.00',
  ]);
  expect([1234567, 0.123456789].map(formatNumber)).toEqual(['1,234,567', '0.123457']);
  expect(formatInstant(Date.UTC(2024, 0, 2, 14, 30), false)).toBe('2024-01-02 14:30');
  expect(formatInstant(Date.UTC(2024, 0, 2, 14, 30, 5), false)).toBe('2024-01-02 14:30:05');
});

it('templates escape every value that is not HTML', () => {
  expect(html`<p title="${`"'`}">${'<&>'}${[1, html`<b>${'<'}</b>`]}</p>`.source).toBe(
    '<p title="&#34;&#39;">&#60;&#38;&#62;1<b>&#60;</b></p>',
  );
});

it.runIf(isAtLength)(
  'a long run has a page of bounded size that names the files with all data',
  () => {
    const run = syntheticRun({ steps: 1_000_000, stepMs: 60_000, tradeEvery: 100 });
    const page = renderReport({ ...run, indicators: syntheticIndicators(run.instruments[0]!) });
    expect(Buffer.byteLength(page)).toBeLessThan(4_000_000);
    expect(page.match(/class="trade"/g)).toHaveLength(2000);
    expect(page).toContain('Each candle is 124 bars.');
    expect(page).toContain(
      '2,000 trades with the largest profits and losses of 10,000; trades.csv contains all',
    );
    expect(page).toContain('equity.parquet has equity and drawdown at all of them');
  },
);

it.runIf(isAtLength)(
  'a long run with more lines than a chart can hold stays within the size limit and reports the omitted lines',
  () => {
    const run = syntheticRun({ steps: 60_000, stepMs: 60_000, tradeEvery: 4 });
    const [bands] = syntheticIndicators(run.instruments[0]!);
    const indicators = Array.from({ length: 20 }, (_, index) => ({
      ...bands!,
      label: `bollinger(close,${index},2)`,
    }));
    const page = renderReport({ ...run, indicators });
    expect(Buffer.byteLength(page)).toBeLessThan(4_000_000);
    expect(page).toContain('bollinger(close, 11, 2)');
    expect(page).not.toContain('bollinger(close, 12, 2)');
    expect(page).toContain('Not drawn: 16 lines of further indicators.');
  },
);

it('a page of many instruments reports how many are omitted', () => {
  const symbols = Array.from({ length: 60 }, (_, index) => `S${index}`);
  const page = renderReport(syntheticRun({ steps: 2000, symbols }));
  expect(page.match(/<option>/g)).toHaveLength(50);
  expect(page).toContain('Only the 50 most traded of 60 instruments');
  expect(page).toContain('Each candle is 6 bars.');
});

it.each([1e308, Infinity])('a run whose equity becomes %d has a report', (overflown) => {
  const run = syntheticRun({ steps: 800 });
  const equity = run.result.equity.map((value, step) => (step > 600 ? overflown : value));
  const page = renderReport({ ...run, result: { ...run.result, equity } });
  expect(page).toContain('Not drawn, because some of its values are infinite or too large.');
});

describe.runIf(isAtLength)('in a browser', { timeout: 30_000 }, () => {
  let browser: Browser;
  let page: Page;
  let directory: string;
  /** Logged messages, errors and requests of the page, which must have none. */
  let complaints: string[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'report-'));
    // The tests read single pixels, which is slower with a graphics card.
    browser = await startChromium(['--disable-accelerated-2d-canvas']);
    // One page for all tests, because this browser exits with its first page.
    page = await browser.newPage();
    page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => {
      if (!request.url().startsWith('file:')) complaints.push(`request: ${request.url()}`);
    });
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await rm(directory, { recursive: true });
  });
  afterEach(() => {
    const found = complaints;
    complaints = [];
    if (found.length > 0) throw new Error(found.join('\n'));
  });

  async function open(
    source: string,
    { scheme = 'light', width = 1024 }: { scheme?: 'light' | 'dark'; width?: number } = {},
  ): Promise<void> {
    const file = join(directory, 'report.html');
    await writeFile(file, source);
    await page.emulateMedia({ media: 'screen', colorScheme: scheme });
    await page.setViewportSize({ width, height: 600 });
    await page.goto(pathToFileURL(file).href);
  }

  /** Number of pixels with the opaque color `rgb` on the canvases in `container`. */
  const pixels = (container: string, rgb: readonly [number, number, number]): Promise<number> =>
    page.evaluate(
      async ([selector, red, green, blue]) => {
        // A chart repaints in the next frame.
        await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
        let count = 0;
        for (const canvas of document.querySelectorAll<HTMLCanvasElement>(`${selector} canvas`)) {
          const { width, height } = canvas;
          if (width === 0 || height === 0) continue;
          const copy = new OffscreenCanvas(width, height);
          const context = copy.getContext('2d', { willReadFrequently: true })!;
          context.drawImage(canvas, 0, 0);
          const { data } = context.getImageData(0, 0, width, height);
          for (let i = 0; i < data.length; i += 4) {
            const same = data[i] === red && data[i + 1] === green && data[i + 2] === blue;
            if (same && data[i + 3] === 255) count++;
          }
        }
        return count;
      },
      [container, ...rgb] as const,
    );
  const WHITE = [255, 255, 255] as const;
  const LIGHT_EQUITY = [36, 88, 179] as const;
  const LIGHT_INK = [26, 29, 35] as const;
  const LIGHT_GAIN = [11, 116, 87] as const;
  const DARK_PAPER = [20, 23, 28] as const;
  const DARK_EQUITY = [134, 176, 255] as const;

  const column = async (table: string, index: number): Promise<string[]> => {
    const cells = await page.locator(`${table} tbody td:nth-child(${index})`).allTextContents();
    return cells.map((cell) => cell.trim());
  };
  const sorted = (table: string): Promise<string[]> =>
    page
      .locator(`${table} th[aria-sort]`)
      .evaluateAll((headers) =>
        headers.map((header) => `${header.textContent.trim()} ${header.ariaSort}`),
      );

  describe('the report of a backtest', () => {
    describe('opened once', () => {
      const run = syntheticRun();
      beforeAll(() => open(renderReport(run)));

      it('draws its charts and describes them in text', async () => {
        expect(await pixels('#equity', LIGHT_EQUITY)).toBeGreaterThan(500);
        expect(await pixels('#prices', LIGHT_INK)).toBeGreaterThan(100);
        expect(await page.getByRole('img', { name: 'Equity and drawdown' }).count()).toBe(1);
        expect(await page.locator('#equity-summary').textContent()).toContain(
          'Equity went from 100,000.00 to',
        );
        expect(await page.locator('#prices-summary').textContent()).toContain('1,500 bars');
      });

      it('states verdict, figures, findings and provenance', async () => {
        const text = (await page.locator('body').innerText()).replaceAll(/\s+/g, ' ');
        for (const stated of [
          '1 of 2 gates not met',
          '1 warning',
          `Sharpe ratio ${run.summary.risk.sharpe!.toFixed(2)}`,
          'mean return ÷ standard deviation (ddof 1) × √365',
          'Too few trades to tell skill from luck',
          'Test a longer window',
          run.summary.hashes.events,
          run.summary.lock.digest,
          'TradingView',
        ]) {
          expect(text).toContain(stated);
        }
      });

      it('shows benchmark, returns, drawdowns and groups of trades, in charts with a text each', async () => {
        for (const name of [
          'Yearly returns',
          'Monthly returns over time',
          'Distribution of returns',
          'Rolling Sharpe ratio',
          'Rolling volatility',
          'Adverse excursion (MAE) and return',
          'Favorable excursion (MFE) and return',
        ]) {
          const chart = page.getByRole('img', { name, exact: true });
          const text = await chart.evaluate(
            (svg) =>
              document.querySelector(`#${svg.getAttribute('aria-describedby')}`)!.textContent,
          );
          expect(text.length).toBeGreaterThan(20);
          expect(await chart.locator('.gain, .loss, .equity').count()).toBeGreaterThan(0);
        }
        const rows = (name: string) =>
          page.getByRole('group', { name, exact: true }).locator('tbody tr').allInnerTexts();
        const { benchmark } = run.summary;
        const table = await rows('Benchmark: Buy and hold');
        expect(table[0]).toContain(formatPercent(benchmark!.total));
        expect(await page.locator('body').innerText()).toContain(
          `Beta\n${benchmark!.beta!.toFixed(2)}`,
        );
        expect(await rows('Worst drawdowns')).toHaveLength(5);
        expect((await rows('Worst drawdowns'))[0]).toContain(
          formatPercent(run.summary.risk.max_drawdown),
        );
        // Each position of the fixture is held for 20 daily bars.
        expect(
          await page.locator('section:has(#trade-groups) > .note').first().innerText(),
        ).toContain('Mean holding time: winners 20 days, losers 20 days.');
        const years = page.locator('figure:has(#years-title)');
        expect(await years.locator('.line.benchmark').count()).toBe(1);
        expect(await years.innerText()).toContain('Horizontal lines: Buy and hold.');
        const long = run.result.trades.filter(({ side }) => side === 'long').length;
        expect((await rows('Trades by Side'))[0]).toMatch(new RegExp(`^long\\s+${long}\\s`));
        expect((await rows('Trades by Weekday of entry, UTC'))[0]).toMatch(/^Monday/);
      });

      it('sorts trades by keyboard in both directions, also for assistive technology', async () => {
        expect(await sorted('#trades')).toEqual(['# ascending']);
        await page.getByRole('button', { name: 'Profit', exact: true }).focus();
        await page.keyboard.press('Enter');
        const profits = (await column('#trades', 11)).map((cell) =>
          Number(cell.replace('−', '-').replaceAll(',', '')),
        );
        expect(profits).toHaveLength(38);
        expect(profits).toEqual(profits.toSorted((a, b) => a - b));
        expect(await sorted('#trades')).toEqual(['Profit ascending']);
        await page.keyboard.press('Enter');
        expect((await column('#trades', 11))[0]).toBe(
          Math.max(...profits).toLocaleString('en-US', { minimumFractionDigits: 2 }),
        );
        expect(await sorted('#trades')).toEqual(['Profit descending']);
      });

      it('moves its charts with buttons, and shows the values under the pointer', async () => {
        const figure = page.locator('figure', { has: page.locator('#equity') });
        const dateAtLeftEdge = async (): Promise<string> => {
          await page.locator('#equity').hover({ position: { x: 2, y: 50 } });
          return figure.locator('.readings b').first().innerText();
        };
        expect(await figure.locator('.readings b').first().innerText()).toBe('2008-02-12');
        expect(await dateAtLeftEdge()).toBe('2004-01-08');
        await figure.getByRole('button', { name: 'Zoom in' }).click();
        expect(await dateAtLeftEdge()).toMatch(/^2005-01/);
        await figure.getByRole('button', { name: 'Later', exact: true }).click();
        expect(await dateAtLeftEdge()).toMatch(/^2006-01/);
        await figure.getByRole('button', { name: 'All' }).click();
        expect(await dateAtLeftEdge()).toBe('2004-01-08');
      });

      it.runIf(isAtLength)('shows its key figures in complete rows at every width', async () => {
        const rowsAt = async (width: number): Promise<number[]> => {
          await page.setViewportSize({ width, height: 600 });
          const tops = await page
            .locator('.figures > div')
            .evaluateAll((tiles) => tiles.map((tile) => tile.getBoundingClientRect().top));
          return [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
        };
        expect(await rowsAt(1600)).toEqual([8]);
        expect(await rowsAt(1200)).toEqual([4, 4]);
        expect(await rowsAt(700)).toEqual([4, 4]);
        expect(await rowsAt(360)).toEqual([2, 2, 2, 2]);
      });
    });

    it.runIf(isAtLength)(
      'shows a trade on the chart of its instrument, and arrow keys move between trades',
      async () => {
        await open(renderReport(syntheticRun({ symbols: ['SPX', 'NDX'] })));
        expect(await page.locator('#prices-summary').textContent()).toMatch(/^SPX/);
        await page.getByRole('button', { name: 'Show trade 1 on the chart' }).focus();
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('Enter');
        expect(await page.locator('#prices-summary').textContent()).toMatch(/^NDX/);
        expect(await page.locator('#instrument').inputValue()).toBe('NDX');
        expect(await page.locator('button.trade[tabindex="0"]').innerText()).toBe('2');

        await page.locator('#instrument').selectOption('SPX');
        expect(await page.locator('#prices-summary').textContent()).toMatch(/^SPX/);
      },
    );

    describe('with indicators', () => {
      const run = syntheticRun({ steps: 300 });
      const indicators = syntheticIndicators(run.instruments[0]!);
      beforeAll(() => open(renderReport({ ...run, indicators })));
      const toggle = (name: RegExp) =>
        page.locator('.indicators').getByRole('button', { name, exact: true });
      const panes = (): Promise<number> => page.locator('#prices tr:has(canvas)').count();
      const BANDS = [180, 83, 9] as const;

      it('names them as the strategy did, with their values under the pointer', async () => {
        const texts = await page.locator('.indicators button').allInnerTexts();
        const { close } = run.instruments[0]!.bars;
        const last = close.at(-1)!;
        expect(texts.map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
          `bands bollinger(close, 20, 2) upper ${formatPrice(last + 5)} lower ${formatPrice(last - 5)}`,
          `strength rsi(close, 14) ${formatPrice(last - 20)}`,
          expect.stringMatching(/^Volume [\d,]+$/),
        ]);
        await page.locator('#prices').hover({ position: { x: 2, y: 50 } });
        expect(await toggle(/strength/).innerText()).toContain(formatPrice(close[0]! - 20));
      });

      it('draws them over the prices and below them, and hides them by keyboard', async () => {
        // Prices, volume, strength and the axis of time.
        expect(await panes()).toBe(4);
        expect(await pixels('#prices', BANDS)).toBeGreaterThan(200);
        await toggle(/bands/).focus();
        await page.keyboard.press('Enter');
        expect(await toggle(/bands/).getAttribute('aria-pressed')).toBe('false');
        expect(await pixels('#prices', BANDS)).toBe(0);
        await toggle(/strength/).click();
        await expect.poll(panes).toBe(3);
        await toggle(/Volume/).click();
        await expect.poll(panes).toBe(2);
        await toggle(/bands/).click();
        expect(await pixels('#prices', BANDS)).toBeGreaterThan(200);
      });

      it.runIf(isAtLength)('has a logarithmic scale', async () => {
        const figure = page.locator('figure:has(#prices)');
        const before = await figure.screenshot();
        const button = figure.getByRole('button', { name: 'Log scale' });
        await button.click();
        expect(await button.getAttribute('aria-pressed')).toBe('true');
        expect(before.equals(await figure.screenshot())).toBe(false);
      });

      it.runIf(isAtLength)(
        'shows the profit of trades at their markers, and of a chosen trade',
        async () => {
          const { entry_price, exit_price, pnl } = run.result.trades[1]!;
          await page.getByRole('button', { name: 'Show trade 2 on the chart' }).click();
          const tooltip = page.locator('.tooltip');
          const profit = `${pnl > 0 ? '+' : ''}${formatMoney(pnl)} USD`;
          await expect
            .poll(() => tooltip.innerText())
            .toBe(
              `Trade 2: ${formatPrice(entry_price)} → ${formatPrice(exit_price)}\nprofit ${profit}`,
            );
          // The text is beside the exit.
          const x = await tooltip.evaluate((box: HTMLElement) => Number.parseFloat(box.style.left));
          await page.locator('#prices').hover({ position: { x: x - 12, y: 60 } });
          await expect.poll(() => tooltip.innerText()).toBe(`One exit: ${profit}`);
        },
      );
    });

    it.runIf(isAtLength)(
      'draws prices as candles when zoomed in and as a line when zoomed out',
      async () => {
        await open(renderReport(syntheticRun({ steps: 1500 })));
        const figure = page.locator('figure:has(#prices)');
        expect(await pixels('#prices', LIGHT_INK)).toBeGreaterThan(100);
        for (let zoom = 0; zoom < 3; zoom += 1) {
          await figure.getByRole('button', { name: 'Zoom in' }).click();
        }
        expect(await pixels('#prices', LIGHT_INK)).toBe(0);
        expect(await pixels('#prices', LIGHT_GAIN)).toBeGreaterThan(500);
      },
    );

    it.runIf(isAtLength)('shows single bars after a few clicks on "Zoom in"', async () => {
      await open(renderReport(syntheticRun({ steps: 100_000, stepMs: 60_000, tradeEvery: 2000 })));
      const figure = page.locator('figure:has(#prices)');
      const single = figure.getByRole('button', { name: 'Single bars' });
      expect(await single.getAttribute('aria-pressed')).toBe('false');
      for (let zoom = 0; zoom < 6; zoom += 1) {
        await figure.getByRole('button', { name: 'Zoom in' }).click();
      }
      expect(await single.getAttribute('aria-pressed')).toBe('true');
      expect(await figure.locator('.readings').innerText()).toMatch(/Bars per candle\s+1$/);
    });

    it.runIf(isAtLength)(
      'follows the system’s theme until its reader chooses another',
      async () => {
        await open(renderReport(syntheticRun({ steps: 300 })), { scheme: 'dark' });
        const button = page.locator('#theme');
        expect(await button.innerText()).toBe('Light theme');
        expect(await pixels('#equity', DARK_PAPER)).toBeGreaterThan(10_000);
        expect(await pixels('#equity', DARK_EQUITY)).toBeGreaterThan(500);

        await button.click();
        expect(await button.innerText()).toBe('Dark theme');
        expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(
          'rgb(255, 255, 255)',
        );
        expect(await pixels('#equity', DARK_PAPER)).toBe(0);
        expect(await pixels('#equity', WHITE)).toBeGreaterThan(10_000);

        await page.emulateMedia({ colorScheme: 'light' });
        await button.click();
        expect(await pixels('#equity', DARK_PAPER)).toBeGreaterThan(10_000);
      },
    );

    it.runIf(isAtLength)('shows on focus why a statistic is undefined', async () => {
      const { summary } = syntheticRun();
      const undefinedSharpe: Partial<typeof summary> = {
        risk: { ...summary.risk, sharpe: null },
        undefined: { 'risk.sharpe': 'zero_variance' },
      };
      await open(renderReport(syntheticRun({ steps: 300, summary: undefinedSharpe })));
      const dash = page.locator('.figures .undefined');
      const reason = page.getByText('Undefined: the returns do not vary.').first();
      expect(await dash.innerText()).toBe('—');
      expect(await reason.isVisible()).toBe(false);
      await dash.focus();
      expect(await reason.isVisible()).toBe(true);
    });

    it.runIf(isAtLength)('prints charts as pictures in light colors in every theme', async () => {
      await open(renderReport(syntheticRun({ steps: 300 })), { scheme: 'dark' });
      await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
      await page.emulateMedia({ media: 'print' });
      expect(await page.locator('canvas:visible').count()).toBe(2);
      expect(await pixels('figure:has(#equity) >', WHITE)).toBeGreaterThan(10_000);
      expect(await pixels('figure:has(#equity) >', DARK_PAPER)).toBe(0);
      await page.emulateMedia({ media: 'screen' });
      await page.evaluate(() => dispatchEvent(new Event('afterprint')));
      expect(await page.locator('.picture').count()).toBe(0);
      expect(await pixels('#equity', DARK_PAPER)).toBeGreaterThan(10_000);
    });

    const ODD: readonly (readonly [what: string, run: HashedInput])[] = [
      ['one bar', syntheticRun({ steps: 1 })],
      [
        'bars of 20 milliseconds, no benchmark',
        withoutBenchmark(syntheticRun({ steps: 500, stepMs: 20 })),
      ],
      ['no instrument', { ...syntheticRun({ steps: 4 }), instruments: [] }],
    ];
    const MORE: typeof ODD = [
      ['no trade', syntheticRun({ steps: 4 })],
      ['bars of a minute', syntheticRun({ stepMs: 60_000 })],
    ];
    it.each(isAtLength ? [...ODD, ...MORE] : ODD)('renders a run with %s', async (_, run) => {
      await open(renderReport(run));
      expect(await page.locator('h1').innerText()).toBe(run.summary.bot.name);
      expect(await pixels('#equity', WHITE)).toBeGreaterThan(10_000);
    });
  });

  describe('the report of a sweep', () => {
    /** Cell of the map in the row with this heading, in the column with this index. */
    const cell = (row: string, index: number): Promise<string> =>
      page
        .locator('#map tbody tr', { has: page.getByRole('rowheader', { name: row, exact: true }) })
        .locator('td')
        .nth(index)
        .innerText();

    it('maps two parameters, and outlines the best trial', async () => {
      await open(renderSweepReport(syntheticSweep(['trailing', 'none'])));
      expect(await page.locator('#map .best').innerText()).toBe('0.90');
      expect(await cell('80', 3)).toBe('0.90');
      expect(await cell('20', 9)).toBe('—');

      await page.getByLabel('Show').selectOption('Closed trades');
      expect(await cell('80', 3)).toBe('20');
      await page.getByLabel('Show').selectOption('Sharpe ratio');
      await page.getByLabel('Down', { exact: true }).selectOption('stop');
      expect(await cell('trailing', 3)).toBe('0.85');
      await page.getByLabel('Across', { exact: true }).selectOption('stop');
      expect(await page.getByLabel('Down', { exact: true }).inputValue()).toBe('fast');
      expect(await cell('20', 0)).toBe('0.90');
    });

    it('draws the trials of a sampled search over each parameter, without a map', async () => {
      const sweep = syntheticSweep(['trailing', 'none']);
      await open(renderSweepReport({ ...sweep, isSampled: true }));
      expect(await page.locator('#map').count()).toBe(0);
      const charts = page.getByRole('img', { name: /Sharpe ratio by/ });
      const titles = charts.evaluateAll((all) =>
        all.map((each) => each.parentElement!.querySelector('h3')!.textContent),
      );
      expect(await titles).toEqual(['fast', 'slow', 'stop'].map((n) => `Sharpe ratio by ${n}`));
      expect(await charts.first().locator('.best').count()).toBe(1);
      expect(await charts.last().locator('text').allTextContents()).toContain('trailing');
    });

    it('shows the number of trials and the deflated Sharpe ratio beside the best trial', async () => {
      await open(renderSweepReport(syntheticSweep()));
      const text = (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ');
      expect(text).toContain('Best Sharpe ratio 0.90 fast 20, slow 80, stop none');
      expect(text).toContain('Deflated Sharpe ratio 41.00%');
      expect(text).toContain('The expected Sharpe ratio of the best of 100 trials without skill');
      expect(text).toContain('Attribute the result to luck');
    });

    it('counts all trials beside the ranked ones, and states why an interrupted sweep cannot be judged', () => {
      const sweep = syntheticSweep();
      const trials = { ...sweep.trials, total: 200, done: 184, pruned: 160, failed: 3 };
      const source = renderSweepReport({
        ...sweep,
        trials,
        ranked: 21,
        deflated: 'not all trials are done',
      });
      const text = source.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
      expect(text).toContain('184 of 200 trials, 160 pruned, 3 failed');
      expect(text).toContain('Trials 184 21 ranked');
      expect(text).toContain('more than luck: not all trials are done.');
    });

    it.runIf(isAtLength)('sorts trials, and keeps those without the statistic last', async () => {
      await open(renderSweepReport(syntheticSweep()));
      for (const direction of ['ascending', 'descending']) {
        await page.getByRole('button', { name: 'Sharpe ratio' }).click();
        expect(await sorted('main')).toEqual([`Sharpe ratio ${direction}`]);
        expect((await column('.sortable', 4)).slice(-1)).toEqual(['—']);
      }
      expect((await column('.sortable', 4))[0]).toBe('0.90');
    });

    it.runIf(isAtLength)(
      'groups the values of a long axis, and supports a single parameter',
      async () => {
        const sweep = syntheticSweep();
        const rows = Array.from({ length: 500 }, (_, period) => ({
          params: { period },
          metrics: { ...sweep.rows[0]!.metrics, sharpe: period / 500 },
        })).toReversed();
        await open(renderSweepReport({ ...sweep, rows, deflated: 'not all trials are done' }));
        expect(await page.locator('#map thead th').count()).toBe(61);
        expect(await page.locator('#map thead th').last().innerText()).toBe('492 to 499');
        expect(await page.locator('#map .best').innerText()).toBe('1.00');
      },
    );
  });

  describe('both reports', () => {
    const HOSTILE = [
      `</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`,
      `"><svg onload="window.hacked=1">`,
      `'-->]]><!--<script>`,
      '\u2028\u2029\u202e\\u003c&amp;${1}',
    ].join('');

    const hostileRun = (): string => {
      const run = syntheticRun({ steps: 300, symbols: [HOSTILE, 'NDX'] });
      const { summary } = run;
      return renderReport({
        ...run,
        currency: HOSTILE,
        summary: {
          ...summary,
          run_id: HOSTILE,
          bot: { name: HOSTILE, slug: HOSTILE },
          version: HOSTILE,
          lock: { ...summary.lock, strategy: { [HOSTILE]: HOSTILE }, data: { [HOSTILE]: HOSTILE } },
          gates: [{ name: HOSTILE, op: '>=', threshold: 1, value: null, pass: false }],
          findings: [
            {
              code: HOSTILE,
              severity: 'critical',
              issue: HOSTILE,
              evidence: { [HOSTILE]: HOSTILE },
              remedy: HOSTILE,
            },
          ],
          orders: { ...summary.orders, reasons: { [HOSTILE]: 1 } },
          profile: { name: HOSTILE, statistics: { [HOSTILE]: null } },
        },
      });
    };
    const hostileSweep = (): string => {
      const { rows, ...sweep } = syntheticSweep();
      return renderSweepReport({
        ...sweep,
        bot: { name: HOSTILE, slug: HOSTILE },
        currency: HOSTILE,
        rows: rows.map(({ metrics, params }) => ({
          metrics,
          params: { [HOSTILE]: params['fast']!, other: HOSTILE },
        })),
      });
    };

    const hostileComparison = (): string => {
      const run = syntheticRun({ steps: 300 });
      const { summary } = run;
      const bot = { name: HOSTILE, slug: HOSTILE };
      const lock = { ...summary.lock, data: { [HOSTILE]: HOSTILE } };
      const hostile = { ...summary, bot, lock, currency: HOSTILE, params: { [HOSTILE]: HOSTILE } };
      return comparisonOf({ ...run, summary: { ...hostile, run_id: HOSTILE } }, run);
    };

    const hostileFork = (): string => {
      const runs = [syntheticRun({ steps: 300 }), syntheticRun({ steps: 300, tradeEvery: 50 })];
      const curves = runs.map(({ result }) => result);
      return renderFork({
        figures: [],
        after: [],
        curves: overlayCurves(curves, undefined, 100),
        bot: HOSTILE,
        run_id: HOSTILE,
        at_seq: 7,
        time: '2024-01-03T00:00:00.000Z',
        steps: { after: 9 },
        events: { session: 1, fork: 2 },
        changes: [HOSTILE],
        notes: [HOSTILE],
      });
    };

    /** The page of a command on a bot with a hostile name and hostile values of a parameter. */
    const pageOfCommand = async (verb: string, options: readonly string[]): Promise<string> => {
      const folder = await mkdtemp(join(tmpdir(), 'service-local-hostile-'));
      const text = await readFile(join(EXAMPLES, 'sma-crossover.yaml'), 'utf8');
      const spec = text
        .replaceAll('./data/', `${EXAMPLES}/data/`)
        .replace(/metadata: .*/, `metadata: { name: ${JSON.stringify(SHORT_HOSTILE)}, slug: x }`)
        .replace(/strategy: .*/, 'strategy: { module: ./own.ts, params: {} }');
      await writeFile(join(folder, 'bot.yaml'), spec);
      await writeFile(join(folder, 'own.ts'), OWN_STRATEGY);
      const words = ['backtest', verb, join(folder, 'bot.yaml'), '-p', 'mode', ...options];
      const { code, stdout } = await inProcess([...words, '--out', folder, '--json']);
      expect(code, stdout).toBe(0);
      const source = await readFile(join(folder, 'report.html'), 'utf8');
      await rm(folder, { recursive: true });
      return source;
    };
    const SHORT_HOSTILE = `</script><img src=x onerror="window.hacked=1"><svg onload=hacked=1>'"`;
    const OWN_STRATEGY = `import { choice, defineStrategy } from 'service-local/strategy';
const hostile = ${JSON.stringify(SHORT_HOSTILE)};
export default defineStrategy({
  name: 'hostile',
  description: hostile,
  params: { mode: choice({ default: hostile, choices: [hostile, hostile + '2'] }) },
  create: ({ instruments: [instrument], broker, params }) => ({
    onBar() {
      const day = params.mode === hostile ? 40 : 50;
      broker.target(instrument, instrument.count % 100 < day ? 1 : 0);
    },
  }),
});
`;

    it.each([
      ['walk-forward', ['--train', '9y', '--test', '9y']],
      ['robustness', ['--permutations', '1']],
    ])('the page of %s treats names and values as text', async (verb, options) => {
      await open(await pageOfCommand(verb, options));
      expect(await page.evaluate(() => (window as { hacked?: unknown }).hacked)).toBeUndefined();
      expect(await page.locator('img, svg[onload]').count()).toBe(0);
      expect(await page.locator('h1').textContent()).toBe(SHORT_HOSTILE);
      expect(await page.locator('main').textContent()).toContain(`${SHORT_HOSTILE}2`);
    });

    it.each([
      ['backtest', hostileRun],
      ['sweep', hostileSweep],
      ['comparison', hostileComparison],
      ['fork', hostileFork],
    ])('treat every name as text: %s', async (_, render) => {
      await open(render());
      expect(await page.evaluate(() => (window as { hacked?: unknown }).hacked)).toBeUndefined();
      expect(await page.locator('img, svg:not([role=img], .indicators *)').count()).toBe(0);
      expect(await page.locator('h1').textContent()).toContain(HOSTILE);
      const names = page.locator('option, td bdi, li bdi');
      expect((await names.allTextContents()).join()).toContain(HOSTILE);
    });

    it('block all other content', async () => {
      await open(renderReport(syntheticRun({ steps: 300 })));
      const ran = await page.evaluate(async () => {
        const script = document.createElement('script');
        script.textContent = 'window.hacked = 1';
        document.body.append(script);
        document.body.insertAdjacentHTML('beforeend', '<b onclick="window.hacked = 1">x</b>');
        document.querySelector<HTMLElement>('b[onclick]')!.click();
        const fetched = await fetch('https://example.com/').then(
          () => 'fetched',
          () => 'refused',
        );
        return [fetched, (window as { hacked?: unknown }).hacked];
      });
      expect(ran).toEqual(['refused', undefined]);
      expect(complaints.every((text) => text.includes('Content Security Policy'))).toBe(true);
      complaints = [];
    });

    const pages: [string, string][] = [
      ['backtest', renderReport(syntheticRun({ symbols: ['SPX', 'NDX'] }))],
      ['sweep', renderSweepReport(syntheticSweep(['none', 'trailing']))],
      ['comparison', comparisonOf(syntheticRun(), syntheticRun({ tradeEvery: 50 }))],
    ];
    describe.each(pages)('%s', (_, source) => {
      it.each(isAtLength ? [360, 768, 2560] : [360])('fits a window of %i px', async (width) => {
        await open(source, { width });
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(overflow).toBe(0);
      });

      it.runIf(isAtLength)(
        'has enough contrast in both themes, names its controls, and uses each id once',
        async () => {
          await open(source);
          expect(await page.evaluate(faintTexts)).toEqual([]);
          await page.emulateMedia({ colorScheme: 'dark' });
          expect(await page.evaluate(faintTexts)).toEqual([]);
          const faults = await page.evaluate(() => {
            const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
            const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
            const references = [
              ...document.querySelectorAll('[aria-labelledby], [aria-describedby]'),
            ]
              .flatMap((element) => [
                element.getAttribute('aria-labelledby'),
                element.getAttribute('aria-describedby'),
              ])
              .filter((id) => id !== null && !ids.includes(id));
            const nameless = [
              ...document.querySelectorAll('button, select, [role], table.sortable'),
            ]
              .filter(
                (element) =>
                  !element.hasAttribute('aria-label') &&
                  !element.hasAttribute('aria-labelledby') &&
                  document.querySelector(`label[for="${element.id}"]`) === null &&
                  element.textContent.trim() === '',
              )
              .map(({ outerHTML }) => outerHTML);
            return [...twice, ...references, ...nameless];
          });
          expect(faults).toEqual([]);
        },
      );
    });
  });
});

function comparisonOf(...runs: readonly HashedInput[]): string {
  const stored = runs.map(({ summary, result }) => ({
    directory: `/runs/${summary.bot.name}`,
    summary,
    ...result,
    trades: result.trades.map((trade) => ({ ...trade, status: 'closed' as const })),
  }));
  return renderComparison(compareRuns(stored), overlayCurves(stored, sharedWindow(stored), 500));
}

function withoutBenchmark(run: HashedInput): HashedInput {
  const { summary, result, drawdown, instruments, currency } = run;
  return { summary, result, drawdown, instruments, currency };
}

/** Returns texts of the page with a contrast below 4.5 to 1 (WCAG 2.2, 1.4.3). Runs in the page. */
function faintTexts(): string[] {
  const parse = (colour: string): number[] => {
    const [r, g, b, alpha = 1] = colour.match(/[\d.]+/g)!.map(Number) as [number, number, number];
    return colour.startsWith('color(') ? [r * 255, g * 255, b * 255, alpha] : [r, g, b, alpha];
  };
  const luminance = (rgb: number[]): number => {
    const [r, g, b] = rgb.map((channel) => {
      const share = channel / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    }) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element: Element): number[] => {
    for (let at: Element | null = element; at !== null; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    throw new Error('the page has no background');
  };
  const faint = new Set<string>();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement!;
    if (texts.currentNode.textContent!.trim() === '' || !element.checkVisibility()) continue;
    const [light, dark] = [
      luminance(parse(getComputedStyle(element).color)),
      luminance(background(element)),
    ].toSorted((a, b) => b - a) as [number, number];
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) faint.add(`${element.tagName}.${element.className} ${contrast.toFixed(2)}`);
  }
  return [...faint];
}
