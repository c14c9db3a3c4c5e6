import { join } from 'node:path';
import { formatCount } from '../../../base/format.ts';
import { ServiceError } from '../../../base/errors.ts';
import type { Download } from '../../../market/download.ts';
import { parseTimeframe, TIMEFRAME_NAMES } from '../../../market/timeframe.ts';
import type { Output } from '../../output.ts';
import { gapsDocument, showGaps } from '../../show-gaps.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'download bars of an exchange into the catalogue',
  description:
    'Downloads closed bars through ccxt, within the rate limits of the exchange, and stores them in the catalogue, where bots find them as catalog://NAME. After an interruption, the same command continues. If the dataset is complete, it adds newer bars. Missing bars are reported and never filled in.',
  options: {
    exchange: {
      value: 'name',
      description: 'id of the exchange in ccxt, or its name in exchanges_file',
      required: true,
    },
    symbol: {
      value: 'pair',
      description: 'symbol at the exchange, such as BTC/USDT',
      required: true,
    },
    timeframe: {
      value: 'length',
      description: 'length of one bar',
      choices: TIMEFRAME_NAMES,
      required: true,
    },
    from: { value: 'date', description: 'first day to download (UTC)', required: true },
    to: { value: 'date', description: 'last day to download (UTC; default: today)' },
    as: { value: 'name', description: 'name of the dataset in the catalogue', required: true },
    repair: {
      value: 'how',
      description: 'drop: skip invalid bars instead of failing',
      choices: ['drop'],
    },
    replace: {
      description: 'replace a dataset of the same name that came from another source',
    },
  },
  settings: ['catalogue_dir', 'exchanges_file'],
  examples: [
    'data download --exchange binance --symbol BTC/USDT --timeframe 1h --from 2024-01-01 --as btc-1h',
  ],
  async run(context, _args, options) {
    const { withLock } = await import('../../../base/file-lock.ts');
    const { makeDirectory } = await import('../../../base/make-directory.ts');
    const { parseWindowOptions } = await import('../../../market/bar-time.ts');
    const { checkDatasetName } = await import('../../../market/catalogue.ts');
    const { downloadBars } = await import('../../../market/download.ts');
    const { readExchanges } = await import('../../../trading/venues/exchanges-file.ts');
    const { checkExchangeId } = await import('../../../trading/venues/ccxt-client.ts');
    const { openExchange, unavailable } = await import('../../../trading/venues/market-data.ts');
    const { exchange: name, symbol, as } = options;
    const { catalogue_dir: dir, exchanges_file } = context.settings;
    const window = parseWindowOptions(options.from, options.to);
    if (window.from > Date.now()) {
      throw new ServiceError('usage', `--from ${options.from} is in the future`, {
        remedy: 'Choose a day in the past.',
      });
    }
    const timeframe = parseTimeframe(options.timeframe);
    checkDatasetName(as);
    makeDirectory(dir);

    const { signal } = context;
    const known = readExchanges(exchanges_file);
    const isNamed = Object.hasOwn(known, name);
    if (!isNamed) checkExchangeId(name);
    const exchange = openExchange(name, isNamed ? known[name]! : { ccxt: name }, signal);
    try {
      await exchange.checkHistory(symbol, timeframe.name);
      const unreachable = (error: unknown): never => {
        throw error instanceof ServiceError ? error : unavailable(name, error);
      };
      const to = Math.min(window.to, (await exchange.time().catch(unreachable)) ?? Date.now());
      const progress = context.progress(`${symbol} ${timeframe.name}`, to - window.from);
      const read = (since: number) =>
        exchange.history(symbol, timeframe.name, since).catch(unreachable);
      const result = await withLock(join(dir, `.download-${as}.lock`), 0, () =>
        downloadBars(
          dir,
          { read, size: exchange.pageSize },
          {
            ...options,
            symbol: as,
            origin: `${name} ${symbol} ${timeframe.name} from ${options.from}`,
            timeframe,
            from: window.from,
            to,
            importedAt: new Date().toISOString(),
            onProgress: (until) => progress.update(until - window.from),
          },
        ),
      ).finally(() => progress.stop());
      const { manifest, added, duplicates, dropped } = result;
      return {
        data: { ...manifest, added, duplicates, dropped, gaps: gapsDocument(result.gaps) },
        show: (out) => showDownload(out, as, result),
      };
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new ServiceError('interrupted', 'the bars downloaded so far are saved', {
        remedy: 'Run the same command again to continue.',
        cause: error,
      });
    } finally {
      await exchange.close();
    }
  },
});

function showDownload(
  out: Output,
  name: string,
  { manifest, added, duplicates, dropped, gaps }: Download,
): void {
  const { rows, timeframe, from, to } = manifest;
  out.line(`catalog://${name}: ${formatCount(rows)} bars of ${timeframe}, ${from} to ${to}`);
  out.line(`bars downloaded: ${formatCount(added)}`);
  if (duplicates > 0) out.line(`duplicate bars ignored: ${formatCount(duplicates)}`);
  for (const [code, count] of Object.entries(dropped)) {
    out.line(`bars skipped for ${code}: ${formatCount(count)}`);
  }
  showGaps(out, gapsDocument(gaps));
}
