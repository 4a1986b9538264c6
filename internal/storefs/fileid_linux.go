package storefs

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ioctlGeneration is FS_IOC_GETVERSION, _IOR('v', 1, long), made from its neighbour _IOR('f', 1, long): how size and direction
// are spelled differs between architectures.
const ioctlGeneration = unix.FS_IOC_GETFLAGS + ('v'-'f')<<8

// IdentityOf tells which file f has open. sure is false where a file that has the same number later cannot be told from it.
func IdentityOf(f syscall.Conn) (id FileID, sure bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return FileID{}, false, err
	}
	const want = unix.STATX_INO | unix.STATX_BTIME
	var st unix.Statx_t
	var gen uint32
	var stErr error
	err = raw.Control(func(fd uintptr) {
		if stErr = unix.Statx(int(fd), "", unix.AT_EMPTY_PATH|unix.AT_STATX_SYNC_AS_STAT, want, &st); stErr == nil {
			// Not every file system has one, or lets it be seen; it gives the same answer each time.
			gen, _ = unix.IoctlGetUint32(int(fd), ioctlGeneration)
		}
	})
	if err == nil {
		err = os.NewSyscallError("statx", stErr)
	}
	if err != nil {
		return FileID{}, false, err
	}
	id = FileID{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino, Gen: gen}
	if sure = st.Mask&want == want; sure {
		id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, sure, nil
}

// Datasync makes the content of f durable, and of its metadata what it takes to read that.
func Datasync(f syscall.Conn) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = raw.Control(func(fd uintptr) {
		for {
			if syncErr = unix.Fdatasync(int(fd)); syncErr != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", syncErr)
}
