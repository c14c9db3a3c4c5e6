import { withDatabase } from '../../../administrators.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: "keep an administrator out; on the server's machine",
  description:
    "From then on the administrator cannot log in, and his tokens and sessions are refused. `reset` lets him in again. Works on the server's database, on the server's machine.",
  arguments: { name: { description: 'of the administrator' } },
  examples: ['identity administrators disable ada'],
  async run(context, { name }) {
    const { disableAdministrator } = await import('../../../../identity/administrators.ts');
    await withDatabase(context, (identity) => disableAdministrator(identity, name));
    return { data: { name }, show: (out) => out.line(`${name} is disabled.`) };
  },
});
