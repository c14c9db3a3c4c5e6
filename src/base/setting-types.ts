import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { formatSpan } from './format.ts';

export interface SettingType<T> {
  /** What a value looks like, for help and errors: `needs <name>`. */
  readonly name: string;
  /** The same in one word, for option lists: `--workers <number>`. */
  readonly placeholder: string;
  readonly choices?: readonly string[];
  readonly complete?: 'directory' | 'file';
  /** Returns undefined if the text is not such a value. A relative path is resolved against `base`. */
  parse(text: string, base: string): T | undefined;
  /** The value as help shows it; by default as JavaScript converts it to text. */
  format?(value: T): string;
}

export const directory: SettingType<string> = {
  name: 'a directory',
  placeholder: 'dir',
  complete: 'directory',
  parse: (text, base) =>
    text === '~' || text.startsWith('~/') ? join(homedir(), text.slice(1)) : resolve(base, text),
};

export const file: SettingType<string> = {
  ...directory,
  name: 'a file',
  placeholder: 'file',
  complete: 'file',
};

export const count: SettingType<number> = {
  name: 'a whole number from 1',
  placeholder: 'number',
  parse: (text) => (/^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : undefined),
};

export const countOrNone: SettingType<number> = {
  name: 'a whole number from 0',
  placeholder: 'number',
  parse: (text) => (/^(0|[1-9][0-9]{0,5})$/.test(text) ? Number(text) : undefined),
};

export const seconds: SettingType<number> = {
  name: 'a number of seconds from 0.001 to 86400',
  placeholder: 'seconds',
  parse(text) {
    const value = /^[0-9]{1,5}(\.[0-9]{1,9})?$/.test(text) ? Number(text) : 0;
    return value >= 0.001 && value <= 86_400 ? value : undefined;
  },
};

export function wholeSeconds(least: number, most: number): SettingType<number> {
  return {
    name: `a whole number of seconds from ${least} to ${most}`,
    placeholder: 'seconds',
    parse: (text) => wholeNumber(text, least, most, 9),
    format: (value) => `${value}, ${formatSpan(value * 1000)}`,
  };
}

export const megabytes: SettingType<number> = {
  name: 'a whole number of megabytes from 128 to 65536',
  placeholder: 'megabytes',
  parse: (text) => wholeNumber(text, 128, 65_536, 5),
};

export const port: SettingType<number> = {
  name: 'a port from 0 to 65535',
  placeholder: 'port',
  parse: (text) => wholeNumber(text, 0, 65_535, 5),
};

function wholeNumber(
  text: string,
  least: number,
  most: number,
  maxDigits: number,
): number | undefined {
  const value = /^[0-9]+$/.test(text) && text.length <= maxDigits ? Number(text) : NaN;
  return value >= least && value <= most ? value : undefined;
}

export const boolean: SettingType<boolean> = {
  name: 'true or false',
  placeholder: 'boolean',
  choices: ['true', 'false'],
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

export function oneOf<const T extends string>(...choices: readonly T[]): SettingType<T> {
  return {
    name: choices.join(' or '),
    placeholder: 'choice',
    choices,
    parse: (text) => choices.find((choice) => choice === text),
  };
}

export const visibleAscii: SettingType<string> = {
  name: '1 to 128 visible ASCII characters',
  placeholder: 'name',
  parse: (text) => (/^[!-~]{1,128}$/.test(text) ? text : undefined),
};

export const host: SettingType<string> = {
  name: 'a host name or IP address',
  placeholder: 'host',
  parse: (text) => (/^[\w.:-]{1,253}$/.test(text) ? text : undefined),
};

export const webOrigin: SettingType<string> = {
  name: 'an origin such as https://licenses.example',
  placeholder: 'url',
  parse(text) {
    const url = URL.parse(text);
    // A path, query or password would make `href` longer.
    const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
    return isOrigin ? url.origin : undefined;
  },
};

export const webOriginOrAuto: SettingType<string> = {
  ...webOrigin,
  name: `auto or ${webOrigin.name}`,
  parse: (text, base) => (text === 'auto' ? text : webOrigin.parse(text, base)),
};

export const webUrlOrAuto: SettingType<string> = {
  name: 'auto or a URL such as http://127.0.0.1:11434/v1',
  placeholder: 'url',
  parse(text) {
    if (text === 'auto') return text;
    const url = URL.parse(text);
    // The URL is shown with the setting, so it must not contain a password or a key in its query.
    const isPlain =
      url !== null && /^https?:$/.test(url.protocol) && `${url.origin}${url.pathname}` === url.href;
    return isPlain ? url.href.replace(/\/$/, '') : undefined;
  },
};

export const proxies: SettingType<string> = {
  name: 'auto, none, or addresses and networks such as 10.0.0.0/8,fd00::1',
  placeholder: 'addresses',
  parse(text) {
    if (text === 'auto' || text === 'none') return text;
    const parts = text.split(',').map((part) => part.trim());
    return parts.every(isNetwork) ? parts.join(',') : undefined;
  },
};

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/');
  const bits = isIP(address) === 6 ? 128 : 32;
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  return isIP(address) !== 0 && !address.includes('%') && isPrefix && more.length === 0;
}
