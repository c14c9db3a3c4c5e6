import { stripVTControlCharacters } from 'node:util';

/** A text as it can be shown on a terminal: nothing in it acts there but line feeds and tabs. */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/[^\P{Cc}\n\t]/gu, ' ');
}

/** The same in one line. */
export function printableLine(text: string): string {
  return printable(text).replaceAll(/[\n\t]/g, ' ');
}
