import { ServiceError } from '../base/errors.ts';
import { parseCount } from './parse-count.ts';

/** Options of verbs that run a bot on a server. */
export const RUN_OPTIONS = {
  version: {
    value: 'n',
    description: 'version of the bot; by default the current one',
    parse: parseCount,
  },
  param: {
    short: 'p',
    value: 'name=value',
    description: 'parameter of the strategy, which overrides the spec',
    repeat: true,
    parse: parseParam,
  },
  from: { value: 'date', description: 'first day, which overrides the spec' },
  to: { value: 'date', description: 'last day, which overrides the spec' },
  detach: { description: 'start the task and do not wait for its result' },
} as const;

/** Converts booleans and numbers. The server checks the type. */
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
