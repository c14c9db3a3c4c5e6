import { stripVTControlCharacters } from 'node:util';
import { showHidden } from './hidden-characters.ts';

/**
 * A text as it can be shown on a terminal: nothing in it acts there but line feeds and tabs, and
 * characters that would reorder or hide it are shown by their codes.
 */
export function printable(text: string): string {
  return showHidden(stripVTControlCharacters(text)).replaceAll(/[^\P{Cc}\n\t]/gu, ' ');
}

/** The same in one line. */
export function printableLine(text: string): string {
  return printable(text).replaceAll(/[\n\t]/g, ' ');
}
