import type { listLicenses } from '../../../../api/licenses.ts';
import { listAnswer } from '../../../list-answer.ts';
import { LICENSE_COLUMNS } from '../../../leases.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the installations, each with its newest lease',
  description:
    'Each installation with its newest lease. An installation is silent when a device of it has not renewed although half of the time that it has for it is over: tell its owner before the lease ends.',
  options: {
    state: {
      value: 'state',
      description: 'only those that are so',
      choices: ['valid', 'grace', 'expired', 'revoked', 'none'],
    },
    silent: { description: 'only those that are silent' },
    search: {
      value: 'text',
      description:
        'part of an id or name of installation or customer; or the id of a lease or device',
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
