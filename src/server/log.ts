import { pino, type Logger } from 'pino';

export type Log = Logger;

/** What must not be read in a log, wherever it came from. */
const SECRETS: readonly [pattern: RegExp, instead: string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----/gs, '[private key]'],
  [/\b(bearer|deviceproof) +[\w.~+/=-]+/gi, '$1 [redacted]'],
  [/\bslt_[\w-]+/g, '[token]'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '[jwt]'],
  [/:\/\/[^\s/@:"]*:[^\s/@"]*@/g, '://[credentials]@'],
];

/** A line of the log without what a log must not hold. */
export function redact(line: string): string {
  return SECRETS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), line);
}

/** @param json whether each line is a JSON object, or a short line for people. */
export function createLog(write: (line: string) => void, json: boolean): Log {
  const form = json ? (line: string) => line : lineForPeople;
  const stream = { write: (line: string) => write(redact(form(line))) };
  return pino(
    {
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    stream,
  );
}

/** `10:16:41 POST /auth/license/leases 201 3 ms`. */
function lineForPeople(line: string): string {
  const {
    level,
    time,
    msg = '',
    err,
  } = JSON.parse(line) as {
    level: string;
    time: string;
    msg?: string;
    err?: { stack: string };
  };
  const what = level === 'info' ? msg : `${level}: ${msg}`;
  return `${time.slice(11, 19)} ${what}${err ? `\n${err.stack}` : ''}\n`;
}
