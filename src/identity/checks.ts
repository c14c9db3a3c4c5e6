import { ServiceError, type Problem } from '../base/errors.ts';
import { hiddenCharacterProblem } from '../base/hidden-characters.ts';
import { ID_FORMAT, ID_FORMAT_RULE } from '../base/id-format.ts';
import { isEntitlement, MAX_ENTITLEMENTS } from '../lease/claims.ts';
import { formatSeconds } from '../base/seconds.ts';

const MAX_TEXT_LENGTH = 200;

/**
 * Refuses a request for all that was found wrong with it, if anything was.
 * @throws ServiceError `invalid_request`
 */
export function refuseInvalid(problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new ServiceError('invalid_request', 'the request asks for what cannot be', {
    problems,
    remedy: 'Correct what is named there, and ask again.',
  });
}

/** Of an id for something new, which gets one made for it when none is given. */
export function idProblems(pointer: string, id: string | undefined): Problem[] {
  return problemUnless(id === undefined || ID_FORMAT.test(id), pointer, ID_FORMAT_RULE);
}

/** Of names and reasons, which are shown in one line. */
export function textProblems(pointer: string, text: string): Problem[] {
  const hidden = hiddenCharacterProblem(text);
  if (hidden !== undefined) return problemUnless(false, pointer, hidden);
  return problemUnless(
    text.length <= MAX_TEXT_LENGTH && text.trim() !== '',
    pointer,
    `a text here is one line of 1 to ${MAX_TEXT_LENGTH} characters`,
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
      `there can be at most ${MAX_ENTITLEMENTS} entitlements, not ${names.length}`,
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
    `this server takes whole seconds from ${least} to ${most} (${formatSeconds(most)}), not ${seconds}`,
  );
}

export function problemUnless(isRight: boolean, pointer: string, message: string): Problem[] {
  return isRight ? [] : [{ code: 'invalid_value', pointer, message }];
}
