import type { listLicenses } from '../../../../api/licenses.ts';
import { listAnswer } from '../../../list-answer.ts';
import { LICENSE_COLUMNS } from '../../../leases.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the installations, each with its newest lease',
  description:
    'Lists each installation with its latest lease. An installation is silent if one of its devices has not renewed in the first half of its renewal period. Notify the owner before the lease ends.',
  options: {
    state: {
      value: 'state',
      description: 'only installations in this state',
      choices: ['valid', 'grace', 'expired', 'revoked', 'none'],
    },
    silent: { description: 'only silent installations' },
    search: {
      value: 'text',
      description:
        'part of the id or name of an installation or customer, or the id of a lease or device',
    },
  },
  examples: [
    'identity licenses list --silent',
    'identity licenses list --state grace',
    'identity licenses list --search acme --json',
  ],
  run: (server, _args, { state, silent, search }) =>
    listAnswer<typeof listLicenses>(server, 'licenses', '/identity/licenses', LICENSE_COLUMNS, {
      query: { state, search, ...(silent && { silent: 'true' }) },
    }),
});
