import { stripVTControlCharacters } from 'node:util';
import { showHidden } from './hidden-characters.ts';

/**
 * Makes a text safe for a terminal: only line feeds and tabs have an effect there, and characters
 * that would reorder or hide text are shown by their codes.
 */
export function printable(text: string): string {
  return showHidden(stripVTControlCharacters(text)).replaceAll(/[^\P{Cc}\n\t]/gu, ' ');
}

/** The same in one line. */
export function printableLine(text: string): string {
  return printable(text).replaceAll(/[\n\t]/g, ' ');
}
