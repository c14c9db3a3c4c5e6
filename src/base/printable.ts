import { stripVTControlCharacters } from 'node:util';
import { showHidden } from './hidden-characters.ts';

/**
 * Makes a text safe for a terminal: removes control characters except line feeds and tabs, and shows
 * characters that reorder or hide text by their codes.
 */
export function printable(text: string): string {
  return showHidden(stripVTControlCharacters(text)).replaceAll(/[^\P{Cc}\n\t]/gu, ' ');
}

/** As `printable`, in one line. */
export function printableLine(text: string): string {
  return printable(text).replaceAll(/[\n\t]/g, ' ');
}
