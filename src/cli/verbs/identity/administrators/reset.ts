import { enrolledAnswer, createFactors, withDatabase } from '../../../administrators.ts';
import { PASSWORD_STDIN_OPTION } from '../../../ask.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: "reset the password and codes of an administrator; run on the server's machine",
  description:
    "For administrators who lost their password or phone, were disabled, or are locked out after failed logins. Sets a new password, authenticator key and recovery codes. Ends all tokens and sessions, deletes all passkeys, lifts the limit on failed logins and enables the administrator. Run it on the server's machine.",
  arguments: { name: { description: 'name of the administrator' } },
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
