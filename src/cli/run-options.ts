import { ServiceError } from '../base/errors.ts';
import { parseCount } from './parse-count.ts';

/** Options of verbs that start a run of a bot on a server. */
export const RUN_OPTIONS = {
  version: {
    value: 'n',
    description: 'of the bot; by default the current one',
    parse: parseCount,
  },
  param: {
    short: 'p',
    value: 'name=value',
    description: "value of a strategy's parameter in place of the spec's",
    repeat: true,
    parse: parseParam,
  },
  from: { value: 'date', description: "first day used, in place of the spec's" },
  to: { value: 'date', description: "last day used, in place of the spec's" },
  detach: { description: 'do not wait' },
} as const;

/** As the API takes it. The server knows what the parameter must be. */
export function parseParam(
  text: string,
): readonly [name: string, value: number | boolean | string] {
  const [, name, value] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new ServiceError('usage', `'${text}' is not name=value`);
  }
  if (value === 'true' || value === 'false') return [name, value === 'true'];
  return [name, value.trim() === '' || Number.isNaN(Number(value)) ? value : Number(value)];
}
