import { ServiceError } from '../errors.ts';
import { BAR_COLUMNS } from '../market/bars.ts';
import type { ColumnNames } from '../market/header.ts';

/** How the data are read, in place of what the spec says. */
export const DATA_OPTIONS = {
  columns: {
    value: 'name=column,…',
    description: 'which column of the data is which, such as time=ts,close=px',
    parse: parseColumns,
  },
  repair: { value: 'how', description: 'drop: leave bad rows of the data out', choices: ['drop'] },
} as const;

function parseColumns(text: string): ColumnNames {
  const pairs = text.split(',').map((pair) => {
    const [, name, column] = /^(\w+)=(.+)$/.exec(pair.trim()) ?? [];
    const known = BAR_COLUMNS.find((candidate) => candidate === name);
    if (known !== undefined && column !== undefined) return [known, column] as const;
    throw new ServiceError('usage', `'${pair}' does not say which column is which`, {
      remedy: `Write name=column with names of ${BAR_COLUMNS.join(', ')}.`,
    });
  });
  return Object.fromEntries(pairs);
}
