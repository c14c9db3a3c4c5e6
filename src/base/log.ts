import { pino, type Logger } from 'pino';
import { printable } from './printable.ts';
import { traceFields } from './tracing.ts';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/** Secrets to remove from every line, whatever logged them. */
const SECRETS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?(-----END [A-Z ]*PRIVATE KEY-----|(?="|$))/g,
    '[private key]',
  ],
  [/\b(bearer|deviceproof) +[\w.~+/=-]+/gi, '$1 [secret]'],
  [/\bsl[a-z]_[\w-]{20,}/g, '[secret]'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '[signed]'],
  [/:\/\/[^\s/@"]*@/g, '://[secret]@'],
];

export function redact(line: string): string {
  return SECRETS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line);
}

/**
 * @param write receives each line without its line break.
 * @param json whether lines are JSON objects or short texts for people.
 */
export function createLog(write: (line: string) => void, json: boolean): Log {
  const options = {
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
    serializers: { err: stackOf },
    mixin: traceFields,
  };
  return pino(options, {
    write: (line: string) => write(redact(json ? line.trimEnd() : printable(lineForPeople(line)))),
  });
}

/** The stacks of an error and its causes, without members, which may contain rows of a database. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { stack = String(error), cause } = error;
  return cause === undefined ? stack : `${stack}\ncaused by ${stackOf(cause)}`;
}

interface Entry {
  readonly level: string;
  readonly time: string;
  readonly [name: string]: string | number | undefined;
}

/**
 * Formats an entry as `10:16:41 POST /auth/license/leases 201 3 ms`. Messages of level `info` have
 * no time.
 */
export function lineForPeople(line: string): string {
  const entry = JSON.parse(line) as Entry;
  const { level, time, msg, method, err } = entry;
  if (level === 'info' && msg !== undefined) return String(msg);
  const what = method === undefined ? msg : requestOf(entry);
  const prefix = level === 'info' ? '' : `${level}: `;
  return `${time.slice(11, 19)} ${prefix}${what}${err === undefined ? '' : `\n${err}`}`;
}

/** A failed request has the id that its response contains. */
function requestOf({ method, path, status, ms, code, reason, request_id }: Entry): string {
  const failure = code === undefined ? [] : [code, reason, `request_id ${request_id}`];
  return [method, path, status, `${ms} ms`, ...failure].filter(Boolean).join(' ');
}
