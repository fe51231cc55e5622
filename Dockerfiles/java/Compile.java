import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Compiles a submission into one .jar: {@code java Compile OUT ENTRY SOURCE...}.
 *
 * <p>The program starts in the class of the entry file that has a main method; if several have one, in the one that is
 * called like the file. Exit code 1 if the sources do not compile, or if it is not clear where the program starts.
 */
public final class Compile {
    private Compile() {}

    /** A compiled class, and the source that it is from. */
    private record Made(ByteArrayOutputStream bytes, URI source) {}

    public static void main(String[] args) throws IOException {
        if (args.length < 3) {
            throw new IllegalArgumentException("usage: java Compile OUT ENTRY SOURCE...");
        }
        File entry = new File(args[1]);
        Map<String, Made> classes = compiled(Arrays.asList(args).subList(2, args.length));
        write(new File(args[0]), mainClass(classes, entry), classes);
    }

    private static Map<String, Made> compiled(List<String> sources) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        Map<String, Made> classes = new TreeMap<>();
        List<String> options = List.of("-proc:none", "-g");
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, Locale.ROOT, StandardCharsets.UTF_8);
                Keeper keeper = new Keeper(files, classes)) {
            boolean isDone = compiler.getTask(
                    null, keeper, null, options, null, files.getJavaFileObjectsFromStrings(sources)).call();
            if (!isDone) {
                System.exit(1);
            }
        }
        return classes;
    }

    /** Keeps classes in memory instead of files. */
    private static final class Keeper extends ForwardingJavaFileManager<JavaFileManager> {
        private final Map<String, Made> classes;

        Keeper(JavaFileManager files, Map<String, Made> classes) {
            super(files);
            this.classes = classes;
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            Made made = new Made(new ByteArrayOutputStream(), sibling == null ? null : sibling.toUri());
            classes.put(name, made);
            return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/')), kind) {
                @Override
                public OutputStream openOutputStream() {
                    return made.bytes();
                }
            };
        }
    }

    private static String mainClass(Map<String, Made> classes, File entry) {
        String fileName = entry.getName();
        String expected = fileName.substring(0, Math.max(0, fileName.lastIndexOf('.')));
        ClassLoader loader = new Loader(classes);
        List<String> found = new ArrayList<>();
        for (Map.Entry<String, Made> made : classes.entrySet()) {
            if (entry.toURI().normalize().equals(made.getValue().source().normalize()) && hasMain(made.getKey(), loader)) {
                found.add(made.getKey());
            }
        }
        List<String> called = found.stream().filter(name -> expected.equals(name.substring(name.lastIndexOf('.') + 1))).toList();
        if (called.size() == 1) {
            return called.get(0);
        }
        if (found.size() != 1) {
            System.err.println(fileName + ": " + (found.isEmpty()
                    ? "error: no class has a method public static void main(String[])"
                    : "error: more than one class has a main method, and none is called " + expected + ": " + String.join(", ", found)));
            System.exit(1);
        }
        return found.get(0);
    }

    private static boolean hasMain(String name, ClassLoader loader) {
        try {
            Method main = Class.forName(name, false, loader).getMethod("main", String[].class);
            return Modifier.isStatic(main.getModifiers()) && main.getReturnType() == void.class;
        } catch (NoSuchMethodException | ClassNotFoundException | LinkageError missing) {
            return false;
        }
    }

    /** Finds the compiled classes; none is initialised. */
    private static final class Loader extends ClassLoader {
        private final Map<String, Made> classes;

        Loader(Map<String, Made> classes) {
            super(ClassLoader.getPlatformClassLoader());
            this.classes = classes;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (!classes.containsKey(name)) {
                throw new ClassNotFoundException(name);
            }
            byte[] bytes = classes.get(name).bytes().toByteArray();
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    /** Writes the .jar, the same bytes for the same classes. Files of the submission beside it are its resources. */
    private static void write(File out, String mainClass, Map<String, Made> classes) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, mainClass);
        manifest.getMainAttributes().put(Attributes.Name.CLASS_PATH, "./");
        try (JarOutputStream jar = new JarOutputStream(new FileOutputStream(out))) {
            add(jar, "META-INF/MANIFEST.MF").write(bytes(manifest));
            for (Map.Entry<String, Made> made : classes.entrySet()) {
                add(jar, made.getKey().replace('.', '/') + ".class").write(made.getValue().bytes().toByteArray());
            }
        }
    }

    private static JarOutputStream add(JarOutputStream jar, String name) throws IOException {
        ZipEntry entry = new ZipEntry(name);
        entry.setTime(315_532_800_000L);
        jar.putNextEntry(entry);
        return jar;
    }

    private static byte[] bytes(Manifest manifest) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        manifest.write(bytes);
        return bytes.toByteArray();
    }
}
