import { pino, type Logger } from 'pino';
import { printable } from './printable.ts';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/** What nobody may read in a log, by whatever way it came there. */
const SECRETS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?(-----END [A-Z ]*PRIVATE KEY-----|(?="|$))/g,
    '[private key]',
  ],
  [/\b(bearer|deviceproof) +[\w.~+/=-]+/gi, '$1 [secret]'],
  [/\bsl[a-z]_[\w-]{20,}/g, '[secret]'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '[signed]'],
  [/:\/\/[^\s/@"]*@/g, '://[secret]@'],
];

/** A line without what a log must not hold. */
export function redact(line: string): string {
  return SECRETS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), line);
}

/**
 * @param write takes lines, without what ends them.
 * @param json whether each line is a JSON object, or a short text for people.
 */
export function createLog(write: (line: string) => void, json: boolean): Log {
  const options = {
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
    serializers: { err: stackOf },
  };
  return pino(options, {
    write: (line: string) => write(redact(json ? line.trimEnd() : printable(lineForPeople(line)))),
  });
}

/** Its stack and those of its causes; not its members, in which a database tells what is in rows. */
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

/** `10:16:41 POST /auth/license/leases 201 3 ms`; what a process says of itself has no time. */
export function lineForPeople(line: string): string {
  const entry = JSON.parse(line) as Entry;
  const { level, time, msg, method, err } = entry;
  if (level === 'info' && msg !== undefined) return String(msg);
  // Of an error Pino makes the message, too; its stack begins with the same.
  const what = method === undefined ? msg : requestOf(entry);
  const prefix = level === 'info' ? '' : `${level}: `;
  return `${time.slice(11, 19)} ${prefix}${what}${err === undefined ? '' : `\n${err}`}`;
}

/** One that failed has the id that its answer has. */
function requestOf({ method, path, status, ms, code, reason, request_id }: Entry): string {
  const failure = code === undefined ? [] : [code, reason, `request_id ${request_id}`];
  return [method, path, status, `${ms} ms`, ...failure].filter(Boolean).join(' ');
}
