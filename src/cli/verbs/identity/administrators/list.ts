import { NO_VALUE } from '../../../../base/format.ts';
import { formatTime } from '../../../../lease/time.ts';
import { withDatabase } from '../../../administrators.ts';
import { showItems } from '../../../show-items.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: "list the administrators; run on the server's machine",
  description: "Reads the database of the server, so run it on the server's machine.",
  examples: ['identity administrators list'],
  async run(context) {
    const { listAdministrators } = await import('../../../../identity/administrators.ts');
    const states = await withDatabase(context, ({ storage }) => listAdministrators(storage.read));
    const administrators = states.map(({ created_at, disabled_at, ...rest }) => ({
      ...rest,
      created_at: formatTime(created_at),
      disabled_at: disabled_at === null ? null : formatTime(disabled_at),
    }));
    return {
      data: { administrators },
      show: (out) =>
        showItems(out, administrators, {
          name: ({ name }) => name,
          administrator: ({ administrator_id }) => administrator_id,
          created: ({ created_at }) => created_at,
          disabled: ({ disabled_at }) => disabled_at ?? NO_VALUE,
          'recovery codes': ({ recovery_codes }) => String(recovery_codes),
        }),
    };
  },
});
