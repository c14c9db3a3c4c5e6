import { withDatabase } from '../../../administrators.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: "disable an administrator; run on the server's machine",
  description:
    "The administrator can no longer log in, and all tokens and sessions of this administrator are rejected. `reset` enables the administrator again. Run it on the server's machine.",
  arguments: { name: { description: 'name of the administrator' } },
  examples: ['identity administrators disable ada'],
  async run(context, { name }) {
    const { disableAdministrator } = await import('../../../../identity/administrators.ts');
    await withDatabase(context, (identity) => disableAdministrator(identity, name));
    return { data: { name }, show: (out) => out.line(`${name} is disabled.`) };
  },
});
