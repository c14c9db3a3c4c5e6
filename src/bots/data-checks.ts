import { outsideSessions, windowBeyondData } from '../backtest/data-findings.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import {
  loadCheckedBars,
  loadDataset,
  type Dataset,
  type LoadOptions,
} from '../market/load-dataset.ts';
import { sliceBars } from '../market/bars.ts';
import { parseWindow } from '../market/bar-time.ts';
import type { History } from '../engine/history-need.ts';
import type { SourceDocument } from './document.ts';
import { fieldsOf } from './fields.ts';
import type { DataSource } from './data-sources.ts';
import type { BotCheck } from './load-bot.ts';
import { volumeUse } from './prepare.ts';
import { dataSchema, universeSchema } from './spec.ts';
import { describeWarmUp, hasIndicators, warmUpReport, type WarmUpReport } from './warm-up-need.ts';

export interface DataCheck {
  readonly problems: readonly Problem[];
  /** Notes on the data, one sentence each. */
  readonly notes: readonly string[];
  /** Undefined if the strategy declares no indicators, or the data cannot be used. */
  readonly warmUp?: WarmUpReport | undefined;
}

/** Location of the data, and options that override the spec. */
export type DataReading = Pick<LoadOptions, 'catalogueDir' | 'columns' | 'repair'>;

/**
 * Reads the data of a bot as a backtest would, ignoring fields of `data` that are invalid
 * themselves.
 */
export async function checkData(
  { bot, sources, models, document }: BotCheck,
  { catalogueDir, columns, repair }: DataReading,
): Promise<DataCheck> {
  const { universe, data, engine } = fieldsOf(fieldsOf(document.value).spec);
  const { fill, slippage } = fieldsOf(engine);
  const modelOf = (value: unknown) =>
    typeof value === 'string' ? { model: value } : fieldsOf(value);
  const volume = volumeUse({ fill: modelOf(fill), slippage: modelOf(slippage) }, models);
  const stated = usableOptions(fieldsOf(data));
  const options = {
    ...stated,
    calendar: universeSchema.shape.calendar.safeParse(fieldsOf(universe)['calendar']).data,
    columns: columns === undefined ? stated.columns : { ...stated.columns, ...columns },
    repair: repair ?? stated.repair,
  };
  const problems: Problem[] = [];
  const notes: string[] = [];
  const histories: Record<string, History> = {};
  let barMs: number | undefined;
  for (const source of sources) {
    try {
      const dataset = await load({
        ...options,
        source: source.address,
        catalogueDir,
        warmUp: bot !== undefined && hasIndicators(bot),
      });
      if (dataset === undefined) continue;
      const { symbol } = source;
      const { bars } = dataset;
      histories[symbol] = { bars, before: dataset.warmUp?.bars ?? sliceBars(bars, 0, 0) };
      barMs = dataset.timeframe.ms;
      notes.push(...(dataset.warmUp?.notes ?? []).map((note) => `${symbol}: ${note}`));
      notes.push(...dataset.notes.map((note) => `${symbol}: ${note}`));
      const beyond = windowBeyondData([{ symbol, uncovered: dataset.uncovered }]);
      if (beyond !== undefined) notes.push(beyond.issue);
      const outside = outsideSessions([{ symbol, ...dataset }], options.calendar);
      if (outside !== undefined) notes.push(`${outside.issue} ${outside.remedy}`);
      if (volume !== undefined && !dataset.hasVolume) {
        const message = `${volume.by} needs volume, but the data of ${symbol} has none`;
        problems.push(document.problem(source.at, { code: 'invalid_data', message }));
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      problems.push(...problemsOf(error, source, document));
      if (error.problems.length > 0 && error.remedy !== undefined) {
        notes.push(`${source.symbol}: ${error.remedy}`);
      }
    }
  }
  if (bot === undefined || barMs === undefined || problems.length > 0) return { problems, notes };
  try {
    const warmUp = warmUpReport(bot, barMs, histories);
    if (warmUp !== undefined) notes.push(...describeWarmUp(warmUp));
    return { problems, notes, warmUp };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code } = error;
    const message = [error.message, error.remedy].filter(Boolean).join('. ');
    return { problems: [document.problem(['spec', 'strategy'], { code, message })], notes };
  }
}

type ReadAs = Pick<LoadOptions, 'timeframe' | 'from' | 'to' | 'columns' | 'timeFormat' | 'repair'>;

/** Options of `data` that are valid by themselves. */
function usableOptions(data: Record<string, unknown>): ReadAs {
  const { timeframe, from, to, columns, time_format, repair } = dataSchema.shape;
  const options = {
    timeframe: timeframe.safeParse(data['timeframe']).data,
    from: from.safeParse(data['from']).data,
    to: to.safeParse(data['to']).data,
    columns: columns.safeParse(data['columns']).data,
    timeFormat: time_format.safeParse(data['time_format']).data,
    repair: repair.safeParse(data['repair']).data,
  };
  try {
    parseWindow(options.from, options.to);
    return options;
  } catch {
    return { ...options, from: undefined, to: undefined };
  }
}

/** Checks only the rows if the timeframe is unknown. */
async function load(options: LoadOptions): Promise<Dataset | undefined> {
  if (options.timeframe !== undefined) return loadDataset(options);
  await loadCheckedBars(options);
  return undefined;
}

/** Locates a problem in the data file if it has a line there, else in the spec. */
function problemsOf(
  { code, message, remedy, problems }: ServiceError,
  { at }: DataSource,
  document: SourceDocument,
): Problem[] {
  const isCatalogued = code === 'file_not_found';
  const whole = {
    code: isCatalogued ? 'data_not_found' : code,
    message: [message, remedy].filter(Boolean).join('. '),
  };
  if (problems.length === 0) return [document.problem(at, whole)];
  return problems.map((problem) =>
    problem.line === undefined
      ? document.problem(at, { code: problem.code, message: `${problem.file}: ${problem.message}` })
      : { column: 1, ...problem },
  );
}
