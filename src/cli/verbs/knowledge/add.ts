import type { addDocument, Document } from '../../../api/knowledge.ts';
import { ServiceError } from '../../../base/errors.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { DOCUMENT_COLUMNS } from '../../knowledge.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'have the server know what stands in files',
  description:
    'Markdown (.md), which is cut at its headings, or any plain text in UTF-8, at most 5 MiB each. A document is called as its path from here. The same text again changes nothing; another one by that name is refused without --replace. All files are read before the first is sent.',
  arguments: {
    files: { description: 'Markdown or text', variadic: true, complete: 'file' },
  },
  options: {
    replace: { description: 'put them in the place of those by the same names' },
    name: { value: 'name', description: 'what to call it, where it is one file' },
    title: { value: 'text', description: 'by default the first heading; where it is one file' },
  },
  settings: ['server_url'],
  examples: ['knowledge add notes/*.md', 'knowledge add policy.txt --name risk-policy --replace'],
  async run(context, { files: paths }, { replace, name, title }) {
    if (paths.length > 1 && (name !== undefined || title !== undefined)) {
      throw new ServiceError('usage', '--name and --title are of one file', {
        remedy: 'Add them one by one.',
      });
    }
    const { readDocumentFile } = await import('../../document-files.ts');
    const files = paths.map((path) => readDocumentFile(path, context.cwd));
    const twice = files.find((one, i) => files.findIndex((two) => two.name === one.name) < i);
    if (twice) {
      throw new ServiceError('usage', `${twice.file}: another file is called ${twice.name} too`, {
        remedy: 'Add them one by one, with --name.',
      });
    }
    const server = await connect(context);
    const documents: Document[] = [];
    let failure: ServiceError | undefined;
    for (const { file, text, ...own } of files) {
      try {
        documents.push(
          await server.call<typeof addDocument>('post', '/knowledge/documents', {
            body: { name: name ?? own.name, title, text, replace },
          }),
        );
      } catch (error) {
        if (!(error instanceof ServiceError) || documents.length === 0) throw error;
        context.message(`${file} was not added, nor what comes after it`);
        failure = error;
        break;
      }
    }
    return {
      data: { documents },
      show: (out) => showItems(out, documents, DOCUMENT_COLUMNS),
      failure,
    };
  },
});
