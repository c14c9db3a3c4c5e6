import { ServiceError, type Problem } from '../base/errors.ts';
import { hiddenCharacterProblem } from '../base/hidden-characters.ts';
import { ID_FORMAT, ID_FORMAT_RULE } from '../base/id-format.ts';
import { isEntitlement, MAX_ENTITLEMENTS } from '../lease/claims.ts';
import { formatSeconds } from '../base/seconds.ts';

const MAX_TEXT_LENGTH = 200;

/** @throws ServiceError `invalid_request` that lists all problems, if there are any. */
export function refuseInvalid(problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new ServiceError('invalid_request', 'the request has invalid values', {
    problems,
    remedy: 'Correct the listed values, and repeat the request.',
  });
}

/** Checks the id of a new record; undefined if the server generates the id. */
export function idProblems(pointer: string, id: string | undefined): Problem[] {
  return problemUnless(id === undefined || ID_FORMAT.test(id), pointer, ID_FORMAT_RULE);
}

/** Checks names and reasons, which are displayed on one line. */
export function textProblems(pointer: string, text: string): Problem[] {
  const hidden = hiddenCharacterProblem(text);
  if (hidden !== undefined) return problemUnless(false, pointer, hidden);
  return problemUnless(
    text.length <= MAX_TEXT_LENGTH && text.trim() !== '',
    pointer,
    `the text must be one line of 1 to ${MAX_TEXT_LENGTH} characters`,
  );
}

export function entitlementProblems(pointer: string, names: readonly string[]): Problem[] {
  return [
    ...names.flatMap((name, i) =>
      problemUnless(
        isEntitlement(name),
        `${pointer}/${i}`,
        'an entitlement has 1 to 64 lower-case letters, digits or _ . : - and begins with a letter',
      ),
    ),
    ...problemUnless(
      names.length <= MAX_ENTITLEMENTS,
      pointer,
      `at most ${MAX_ENTITLEMENTS} entitlements are allowed, not ${names.length}`,
    ),
  ];
}

export function secondsProblems(
  pointer: string,
  seconds: number,
  least: number,
  most: number,
): Problem[] {
  return problemUnless(
    Number.isSafeInteger(seconds) && seconds >= least && seconds <= most,
    pointer,
    `must be whole seconds from ${least} to ${most} (${formatSeconds(most)}), not ${seconds}`,
  );
}

export function problemUnless(isRight: boolean, pointer: string, message: string): Problem[] {
  return isRight ? [] : [{ code: 'invalid_value', pointer, message }];
}
