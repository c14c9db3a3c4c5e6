import type { deleteSearch } from '../../../api/searches.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'cancel a search on the server',
  description:
    'Stops the shards of a search within seconds, and deletes its bars and results from the server. ' +
    'Its command ends with an error; trials that it has received stay on its machine. The search of ' +
    'another administrator requires a token with the scope admin.',
  arguments: { search: { description: 'id of the search; see searches list' } },
  examples: ['searches cancel 0198c0de-0000-7000-8000-00000005ea2c'],
  async run(server, { search: search_id }) {
    await server.call<typeof deleteSearch>('delete', '/searches/{search_id}', {
      params: { search_id },
    });
    return {
      data: { search_id },
      show: (out) => out.line(`search ${search_id} is canceled`),
    };
  },
});
