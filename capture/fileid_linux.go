package capture

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ioctlGeneration is FS_IOC_GETVERSION, _IOR('v', 1, long), made from its neighbour _IOR('f', 1, long): how size and direction
// are spelled differs between architectures.
const ioctlGeneration = unix.FS_IOC_GETFLAGS + ('v'-'f')<<8

// askIdentity is identityOf by two system calls.
func askIdentity(f syscall.Conn) (fileID, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return fileID{}, err
	}
	var st unix.Statx_t
	var gen uint32
	var stErr error
	err = raw.Control(func(fd uintptr) {
		stErr = unix.Statx(int(fd), "", unix.AT_EMPTY_PATH|unix.AT_STATX_SYNC_AS_STAT, unix.STATX_INO|unix.STATX_BTIME, &st)
		if stErr == nil {
			// Not every file system has one, or lets it be seen; it gives the same answer each time.
			gen, _ = unix.IoctlGetUint32(int(fd), ioctlGeneration)
		}
	})
	if err == nil {
		err = stErr
	}
	switch {
	case err == unix.ENOSYS:
		return fileID{}, errNoBirthTime
	case err != nil:
		return fileID{}, os.NewSyscallError("statx", err)
	case st.Mask&(unix.STATX_BTIME|unix.STATX_INO) != unix.STATX_BTIME|unix.STATX_INO:
		return fileID{}, errNoBirthTime
	}
	return fileID{
		dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino,
		birth: st.Btime.Sec*1e9 + int64(st.Btime.Nsec), gen: gen,
	}, nil
}

// datasync makes the content of f durable, and of its metadata what it takes to read that.
func datasync(f *os.File) error {
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
