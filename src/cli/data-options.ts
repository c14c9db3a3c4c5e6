import { parseSpan } from '../base/calendar-span.ts';
import { ServiceError } from '../base/errors.ts';
import { BAR_COLUMNS } from '../market/bars.ts';
import type { ColumnNames } from '../market/header.ts';

/** Options for reading the data, which override the spec. */
export const DATA_OPTIONS = {
  columns: {
    value: 'name=column,…',
    description: 'columns of the file that contain times and prices, such as time=ts,close=px',
    parse: parseColumns,
  },
  repair: {
    value: 'how',
    description: 'drop: skip bad rows of the data instead of failing',
    choices: ['drop'],
  },
} as const;

/** For verbs that run a bot; `prepare` then leaves the period out. */
export const HOLDOUT_OPTION = {
  holdout: {
    value: 'period',
    description: 'length of the last part of the data to leave out, such as 1y; overrides the spec',
    parse: (text: string): string => parseSpan(text).text,
  },
} as const;

function parseColumns(text: string): ColumnNames {
  const pairs = text.split(',').map((pair) => {
    const [, name, column] = /^(\w+)=(.+)$/.exec(pair.trim()) ?? [];
    const known = BAR_COLUMNS.find((candidate) => candidate === name);
    if (known !== undefined && column !== undefined) return [known, column] as const;
    throw new ServiceError('usage', `'${pair}' is not a column mapping`, {
      remedy: `Write name=column, where name is one of ${BAR_COLUMNS.join(', ')}.`,
    });
  });
  return Object.fromEntries(pairs);
}
