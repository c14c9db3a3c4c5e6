import type { addDocument, Document } from '../../../api/knowledge.ts';
import { ServiceError } from '../../../base/errors.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { DOCUMENT_COLUMNS } from '../../knowledge.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'add files to the documents of the server',
  description:
    'Adds Markdown files (.md), which are split at their headings, or plain text files in UTF-8, of at most 5 MiB each. The name of a document is its path relative to the current directory. Adding the same text again has no effect; changing a document requires --replace. All files are checked before the first is sent.',
  arguments: {
    files: { description: 'Markdown or text', variadic: true, complete: 'file' },
  },
  options: {
    replace: { description: 'replace documents with the same names' },
    name: { value: 'name', description: 'name of the document, for a single file' },
    title: { value: 'text', description: 'title, for a single file (default: the first heading)' },
  },
  settings: ['server_url'],
  examples: ['knowledge add notes/*.md', 'knowledge add policy.txt --name risk-policy --replace'],
  async run(context, { files: paths }, { replace, name, title }) {
    if (paths.length > 1 && (name !== undefined || title !== undefined)) {
      throw new ServiceError('usage', '--name and --title require a single file', {
        remedy: 'Add the files one by one.',
      });
    }
    const { readDocumentFile } = await import('../../document-files.ts');
    const files = paths.map((path) => readDocumentFile(path, context.cwd));
    const twice = files.find((one, i) => files.findIndex((two) => two.name === one.name) < i);
    if (twice) {
      throw new ServiceError(
        'usage',
        `${twice.file}: another file has the same name ${twice.name}`,
        {
          remedy: 'Add the files one by one with different values of --name.',
        },
      );
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
        context.message(`${file} and all files after it were not added`);
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
