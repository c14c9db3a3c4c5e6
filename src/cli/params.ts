import { ServiceError } from '../errors.ts';

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
