import { basename, resolve } from 'node:path';
import { TIMEFRAME_NAMES } from '../../../market/timeframe.ts';
import { formatCount } from '../../../base/format.ts';
import { DATA_OPTIONS } from '../../data-options.ts';
import { gapsDocument, showGaps } from '../../show-gaps.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'check the bars of a file and store them in the catalogue',
  description:
    'Checks the bars of a file and stores them as Parquet in the catalogue, where bots find them as catalog://SYMBOL. Reports bad rows with number and reason. Missing bars are reported and never filled in.',
  arguments: {
    file: { description: 'CSV (also gzipped) or Parquet', complete: 'file' },
  },
  options: {
    symbol: { value: 'name', description: 'name in the catalogue (default: the name of the file)' },
    timeframe: {
      value: 'length',
      description: 'resample to longer bars (default: no resampling)',
      choices: TIMEFRAME_NAMES,
    },
    timeFormat: {
      value: 'format',
      description: 'format of the times, as for strptime, such as %m/%d/%Y (default: ISO 8601)',
    },
    ...DATA_OPTIONS,
    replace: { description: 'replace a dataset of the same name' },
  },
  settings: ['catalogue_dir'],
  examples: [
    'data import spx.csv --symbol SPX',
    'data import ticks.parquet --timeframe 1h --columns time=ts,close=px',
    'data import dirty.csv.gz --repair drop --replace',
  ],
  async run(context, args, options) {
    const { checkName, importBars } = await import('../../../market/catalogue.ts');
    const { loadDataset } = await import('../../../market/load-dataset.ts');
    const source = resolve(context.cwd, args.file);
    const dir = context.settings.catalogue_dir;
    const { symbol = basename(source).replace(/(\.csv|\.parquet)?(\.gz)?$/i, ''), replace } =
      options;
    await checkName(dir, { symbol, replace });
    const { bars, timeframe, hasVolume, gaps, dropped, notes } = await loadDataset({
      source,
      catalogueDir: dir,
      timeframe: options.timeframe,
      columns: options.columns,
      timeFormat: options.timeFormat,
      repair: options.repair,
    });
    for (const note of notes) context.message(`note: ${note}`);
    const manifest = await importBars(dir, bars, {
      symbol,
      timeframe: timeframe.name,
      hasVolume,
      origin: source,
      importedAt: new Date().toISOString(),
      replace,
    });
    const missing = gapsDocument(gaps);
    return {
      data: { ...manifest, dropped, gaps: missing },
      show(out) {
        const { from, to } = manifest;
        const size = `${formatCount(bars.length)} bars of ${timeframe.name}`;
        out.line(`catalog://${symbol}: ${size}, ${from} to ${to}`);
        for (const [code, rows] of Object.entries(dropped)) {
          out.line(`rows skipped for ${code}: ${formatCount(rows)}`);
        }
        showGaps(out, missing);
      },
    };
  },
});
