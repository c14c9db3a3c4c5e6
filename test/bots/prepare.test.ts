import { expect, it } from 'vitest';
import { loadBot } from '../../src/bots/load-bot.ts';
import { prepare, type Prepared } from '../../src/bots/prepare.ts';
import { VALID, directoryWith } from './specs.ts';

const FILL = 'fill: {model: volume_share, limit: 0.1}';
const SLIPPAGE = 'slippage: {model: none}';

/** Prepares the valid spec with other models, on daily bars of January 2020. */
function prepared(columns: string, fill: string, slippage: string): Promise<Prepared> {
  const rows = Array.from({ length: 31 }, (_, i) => {
    const row = [`2020-01-${String(i + 1).padStart(2, '0')}`, 10, 500];
    return row.slice(0, columns.split(',').length).join(',');
  });
  const directory = directoryWith({
    'bot.yaml': VALID.replace(FILL, fill).replace(SLIPPAGE, slippage),
    'spx.csv': [columns, ...rows, ''].join('\n'),
  });
  return prepare(loadBot(`${directory}/bot.yaml`), { catalogueDir: directory, assertions: [] });
}

it.each([
  [FILL, SLIPPAGE, 'fill'],
  ['fill: next_open', 'slippage: {model: volume_share, impact: 0.1}', 'slippage'],
])('rejects data without volume for %s and %s', async (fill, slippage, name) => {
  await expect(prepared('date,close', fill, slippage)).rejects.toMatchObject({
    code: 'invalid_data',
    message: `${name}: volume_share needs volume, but the data of SPX has none`,
    remedy: expect.stringContaining('data.columns.volume'),
  });
  const { job } = await prepared('date,close,volume', fill, slippage);
  expect(job.instruments[0]!.bars.volume[0]).toBe(500);
});

it('accepts data without volume, with a note, if no model needs volume', async () => {
  const { notes, job } = await prepared('date,close', 'fill: next_open', SLIPPAGE);
  expect(notes).toContain('SPX: The data have no volume: it is 0 in every bar.');
  expect(job.instruments[0]!.source).toEqual({ bars: 31, missing: 0 });
});
