import { defineConfig } from 'vite';
import react from '@vitejs/plugin-react';

export default defineConfig({
  plugins: [react()],
  define: { 'process.env': '{}', global: 'globalThis' },
  build: { minify: false, chunkSizeWarningLimit: 99999 },
});
