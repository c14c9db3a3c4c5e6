import type { Problem } from '../base/errors.ts';
import { hiddenCharacterProblem } from '../base/hidden-characters.ts';
import type { Path, SourceDocument } from './document.ts';
import { isFields } from './fields.ts';

/** Fields that may have several lines, or must match the names of files and their headers. */
const OTHER_TEXTS: ReadonlySet<PropertyKey> = new Set([
  'data',
  'description',
  'instructions',
  'module',
  'prompt',
  '$schema',
]);

/**
 * Reports hidden characters in names and one-line texts. Not used for specs that a server stored
 * before this check existed, so that they still run.
 */
export function nameProblems(document: SourceDocument): Problem[] {
  return problemsIn(document.value, [], document);
}

function problemsIn(value: unknown, path: Path, document: SourceDocument): Problem[] {
  if (typeof value === 'string') return problemOf(value, path, document, 'value');
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => problemsIn(item, [...path, i], document));
  }
  if (!isFields(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    if (OTHER_TEXTS.has(key)) return [];
    const at = [...path, key];
    return [...problemOf(key, at, document, 'key'), ...problemsIn(member, at, document)];
  });
}

function problemOf(
  text: string,
  path: Path,
  document: SourceDocument,
  part: 'key' | 'value',
): Problem[] {
  const message = hiddenCharacterProblem(text);
  return message === undefined
    ? []
    : [document.problem(path, { code: 'hidden_character', message }, part)];
}
