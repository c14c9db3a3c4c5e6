import { enrolledAnswer, createFactors, withDatabase } from '../../../administrators.ts';
import { PASSWORD_STDIN_OPTION } from '../../../ask.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: "make password and codes anew; on the server's machine",
  description:
    "For whoever has lost password or phone, or is kept out by somebody who guesses: makes password, key of the app and recovery codes anew, ends all tokens and sessions, deletes all passkeys, lifts the limit on failed logins, and lets in again who was disabled. Works on the server's database, on the server's machine.",
  arguments: { name: { description: 'of the administrator' } },
  options: { passwordStdin: PASSWORD_STDIN_OPTION },
  examples: [
    'identity administrators reset ada',
    'identity administrators reset ci-bot --password-stdin --json < password.txt',
  ],
  async run(context, { name }, { passwordStdin }) {
    const { getAdministrator, resetAdministrator } =
      await import('../../../../identity/administrators.ts');
    return withDatabase(context, async (identity) => {
      await getAdministrator(identity.storage.read, name);
      const factors = await createFactors(context, name, passwordStdin);
      const enrolled = await resetAdministrator(identity, name, factors);
      context.message(`all tokens of ${name} have ended`);
      return enrolledAnswer(enrolled, factors);
    });
  },
});
